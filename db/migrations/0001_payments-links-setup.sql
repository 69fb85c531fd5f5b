CREATE TABLE "subscription_link" (
	"merchant_id" text NOT NULL,
	"id" text NOT NULL,
	"code" text NOT NULL,
	"terms" jsonb NOT NULL,
	"customer_id" text,
	"customer_details" json NOT NULL,
	"receipt_id" text,
	"description" text,
	"callback_url" text,
	"cancel_url" text,
	"product_page" json,
	"phone_number_required" boolean NOT NULL,
	"multi_use_limit" integer NOT NULL,
	"uses" integer DEFAULT 0 NOT NULL,
	"created_at" timestamp(3) with time zone NOT NULL,
	"expires_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "subscription_link_merchant_id_id_pk" PRIMARY KEY("merchant_id","id"),
	CONSTRAINT "subscription_link__uses__ck" CHECK ("subscription_link"."uses" between 0 and "subscription_link"."multi_use_limit")
);
--> statement-breakpoint
CREATE TABLE "refund" (
	"merchant_id" text NOT NULL,
	"id" text NOT NULL,
	"intent_id" text NOT NULL,
	"state" text NOT NULL,
	"amount_minor" bigint NOT NULL,
	"currency" char(3) NOT NULL,
	"gateway_key" text NOT NULL,
	"gateway_charge_id" text NOT NULL,
	"gateway_refund_id" text,
	"reason" text,
	"created_at" timestamp(3) with time zone NOT NULL,
	"refunded_at" timestamp(3) with time zone,
	"first_sent_at" timestamp(3) with time zone,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "refund_merchant_id_id_pk" PRIMARY KEY("merchant_id","id"),
	CONSTRAINT "refund__state__ck" CHECK ("refund"."state" in ('CREATED', 'SENDING', 'UNKNOWN', 'SUCCEEDED', 'REFUSED')),
	CONSTRAINT "refund__amount__ck" CHECK ("refund"."amount_minor" between 1 and 9007199254740991)
);
--> statement-breakpoint
CREATE TABLE "setup_method" (
	"merchant_id" text NOT NULL,
	"id" text NOT NULL,
	"customer_id" text NOT NULL,
	"status" text NOT NULL,
	"currency" char(3) NOT NULL,
	"payment_methods" json NOT NULL,
	"payment_method_id" text,
	"store_front_id" text,
	"billing_details" json NOT NULL,
	"callback_url" text NOT NULL,
	"metadata" json,
	"phone_number_required" boolean NOT NULL,
	"created_at" timestamp(3) with time zone NOT NULL,
	"expires_at" timestamp(3) with time zone NOT NULL,
	"completed_at" timestamp(3) with time zone,
	CONSTRAINT "setup_method_merchant_id_id_pk" PRIMARY KEY("merchant_id","id"),
	CONSTRAINT "setup_method__status__ck" CHECK ("setup_method"."status" in ('CREATED', 'SUCCESS', 'FAILED', 'CANCELLED'))
);
--> statement-breakpoint
ALTER TABLE "payment_attempt" DROP CONSTRAINT "payment_attempt__trigger__ck";--> statement-breakpoint
ALTER TABLE "checkout_session" ALTER COLUMN "subscription_id" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "subscription" ADD COLUMN "link_id" text;--> statement-breakpoint
ALTER TABLE "payment_intent" ADD COLUMN "kind" text DEFAULT 'cycle' NOT NULL;--> statement-breakpoint
ALTER TABLE "payment_intent" ADD COLUMN "refunded_minor" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "payment_intent" ADD COLUMN "description" text;--> statement-breakpoint
ALTER TABLE "payment_intent" ADD COLUMN "comments" text;--> statement-breakpoint
ALTER TABLE "payment_intent" ADD COLUMN "store_front_id" text;--> statement-breakpoint
ALTER TABLE "payment_intent" ADD COLUMN "callback_url" text;--> statement-breakpoint
ALTER TABLE "payment_intent" ADD COLUMN "cancel_url" text;--> statement-breakpoint
ALTER TABLE "payment_intent" ADD COLUMN "payment_methods" json;--> statement-breakpoint
ALTER TABLE "payment_intent" ADD COLUMN "phone_number_required" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "payment_intent" ADD COLUMN "tokenise" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "payment_intent" ADD COLUMN "checkout_expires_at" timestamp(3) with time zone;--> statement-breakpoint
ALTER TABLE "payment_intent" ADD COLUMN "updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "payment_attempt" ADD COLUMN "command_id" text;--> statement-breakpoint
ALTER TABLE "checkout_session" ADD COLUMN "purpose" text DEFAULT 'subscription' NOT NULL;--> statement-breakpoint
ALTER TABLE "checkout_session" ADD COLUMN "intent_id" text;--> statement-breakpoint
ALTER TABLE "checkout_session" ADD COLUMN "setup_method_id" text;--> statement-breakpoint
ALTER TABLE "checkout_session" ADD COLUMN "completed_at" timestamp(3) with time zone;--> statement-breakpoint
ALTER TABLE "subscription_link" ADD CONSTRAINT "subscription_link_merchant_id_merchant_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."merchant"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "refund" ADD CONSTRAINT "refund_merchant_id_intent_id_payment_intent_merchant_id_id_fk" FOREIGN KEY ("merchant_id","intent_id") REFERENCES "public"."payment_intent"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "setup_method" ADD CONSTRAINT "setup_method_merchant_id_customer_id_customer_merchant_id_id_fk" FOREIGN KEY ("merchant_id","customer_id") REFERENCES "public"."customer"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "setup_method" ADD CONSTRAINT "setup_method_merchant_id_payment_method_id_payment_method_merchant_id_id_fk" FOREIGN KEY ("merchant_id","payment_method_id") REFERENCES "public"."payment_method"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "subscription_link__code__uq" ON "subscription_link" USING btree ("code");--> statement-breakpoint
CREATE UNIQUE INDEX "refund__gateway_key__uq" ON "refund" USING btree ("gateway_key");--> statement-breakpoint
CREATE INDEX "refund__intent__idx" ON "refund" USING btree ("merchant_id","intent_id");--> statement-breakpoint
CREATE INDEX "refund__open__idx" ON "refund" USING btree ("updated_at") WHERE "refund"."state" in ('CREATED', 'SENDING', 'UNKNOWN');--> statement-breakpoint
ALTER TABLE "subscription" ADD CONSTRAINT "subscription_merchant_id_link_id_subscription_link_merchant_id_id_fk" FOREIGN KEY ("merchant_id","link_id") REFERENCES "public"."subscription_link"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "checkout_session" ADD CONSTRAINT "checkout_session_merchant_id_intent_id_payment_intent_merchant_id_id_fk" FOREIGN KEY ("merchant_id","intent_id") REFERENCES "public"."payment_intent"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "checkout_session" ADD CONSTRAINT "checkout_session_merchant_id_setup_method_id_setup_method_merchant_id_id_fk" FOREIGN KEY ("merchant_id","setup_method_id") REFERENCES "public"."setup_method"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "customer__created__idx" ON "customer" USING btree ("merchant_id","created_at","id");--> statement-breakpoint
CREATE INDEX "subscription__created__idx" ON "subscription" USING btree ("merchant_id","created_at","id");--> statement-breakpoint
CREATE INDEX "payment_intent__created__idx" ON "payment_intent" USING btree ("merchant_id","created_at","id");--> statement-breakpoint
CREATE INDEX "payment_intent__open__idx" ON "payment_intent" USING btree ("updated_at") WHERE "payment_intent"."kind" <> 'cycle' and "payment_intent"."status" in ('CREATED', 'PENDING');--> statement-breakpoint
CREATE UNIQUE INDEX "payment_attempt__command__uq" ON "payment_attempt" USING btree ("merchant_id","intent_id","command_id") WHERE "payment_attempt"."command_id" is not null;--> statement-breakpoint
CREATE INDEX "checkout_session__intent__idx" ON "checkout_session" USING btree ("merchant_id","intent_id");--> statement-breakpoint
ALTER TABLE "payment_intent" ADD CONSTRAINT "payment_intent__kind__ck" CHECK ("payment_intent"."kind" in ('cycle', 'one_time', 'tokenised', 'hosted'));--> statement-breakpoint
ALTER TABLE "payment_intent" ADD CONSTRAINT "payment_intent__refunded__ck" CHECK ("payment_intent"."refunded_minor" between 0 and "payment_intent"."amount_minor");--> statement-breakpoint
ALTER TABLE "payment_attempt" ADD CONSTRAINT "payment_attempt__trigger__ck" CHECK ("payment_attempt"."trigger" in ('checkout', 'scheduled', 'automatic_retry', 'manual_retry', 'new_method', 'one_time', 'tokenised'));--> statement-breakpoint
ALTER TABLE "checkout_session" ADD CONSTRAINT "checkout_session__purpose__ck" CHECK ("checkout_session"."purpose" in ('subscription', 'payment', 'setup_method', 'update_method'));--> statement-breakpoint
ALTER TABLE "checkout_session" ADD CONSTRAINT "checkout_session__subject__ck" CHECK (num_nonnulls("checkout_session"."subscription_id", "checkout_session"."intent_id", "checkout_session"."setup_method_id") = 1);