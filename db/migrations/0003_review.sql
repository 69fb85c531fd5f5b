CREATE TABLE "payment_review" (
	"merchant_id" text NOT NULL,
	"subject_id" text NOT NULL,
	"reason" text NOT NULL,
	"since_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"outcome" text,
	"gateway_id" text,
	"code" text,
	"decided_by" text,
	"note" text,
	"decided_at" timestamp(3) with time zone,
	"closed_at" timestamp(3) with time zone,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "payment_review_merchant_id_subject_id_pk" PRIMARY KEY("merchant_id","subject_id"),
	CONSTRAINT "payment_review__outcome__ck" CHECK ("payment_review"."outcome" in ('paid', 'declined', 'not_charged', 'refunded', 'not_refunded')),
	CONSTRAINT "payment_review__decided__ck" CHECK (("payment_review"."outcome" is null) = ("payment_review"."decided_at" is null))
);
--> statement-breakpoint
CREATE TABLE "late_charge" (
	"merchant_id" text NOT NULL,
	"attempt_id" text NOT NULL,
	"gateway_charge_id" text NOT NULL,
	"amount_minor" bigint NOT NULL,
	"currency" char(3) NOT NULL,
	"found_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "late_charge_merchant_id_attempt_id_pk" PRIMARY KEY("merchant_id","attempt_id")
);
--> statement-breakpoint
ALTER TABLE "refund" DROP CONSTRAINT "refund__state__ck";--> statement-breakpoint
DROP INDEX "refund__open__idx";--> statement-breakpoint
ALTER TABLE "refund" ADD COLUMN "late_attempt_id" text;--> statement-breakpoint
ALTER TABLE "late_charge" ADD CONSTRAINT "late_charge_merchant_id_attempt_id_payment_attempt_merchant_id_id_fk" FOREIGN KEY ("merchant_id","attempt_id") REFERENCES "public"."payment_attempt"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "payment_review__open__idx" ON "payment_review" USING btree ("updated_at") WHERE "payment_review"."closed_at" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "late_charge__charge__uq" ON "late_charge" USING btree ("merchant_id","gateway_charge_id");--> statement-breakpoint
CREATE INDEX "refund__open__idx" ON "refund" USING btree ("updated_at") WHERE "refund"."state" in ('CREATED', 'SENDING', 'UNKNOWN', 'REVIEW');--> statement-breakpoint
ALTER TABLE "refund" ADD CONSTRAINT "refund__state__ck" CHECK ("refund"."state" in ('CREATED', 'SENDING', 'UNKNOWN', 'REVIEW', 'SUCCEEDED', 'REFUSED'));