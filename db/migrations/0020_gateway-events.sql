CREATE TABLE "gateway_event" (
	"merchant_id" text NOT NULL,
	"gateway" text NOT NULL,
	"event_id" text NOT NULL,
	"type" text NOT NULL,
	"subject_id" text,
	"hint" json NOT NULL,
	"received_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"handled_at" timestamp(3) with time zone,
	"swept_at" timestamp(3) with time zone,
	CONSTRAINT "gateway_event_merchant_id_gateway_event_id_pk" PRIMARY KEY("merchant_id","gateway","event_id")
);
--> statement-breakpoint
CREATE TABLE "dispute" (
	"merchant_id" text NOT NULL,
	"id" text NOT NULL,
	"intent_id" text NOT NULL,
	"attempt_id" text NOT NULL,
	"gateway" text NOT NULL,
	"gateway_dispute_id" text NOT NULL,
	"amount_minor" bigint NOT NULL,
	"currency" char(3) NOT NULL,
	"reason" text NOT NULL,
	"status" text NOT NULL,
	"opened_at" timestamp(3) with time zone NOT NULL,
	"closed_at" timestamp(3) with time zone,
	CONSTRAINT "dispute_merchant_id_id_pk" PRIMARY KEY("merchant_id","id"),
	CONSTRAINT "dispute__status__ck" CHECK ("dispute"."status" in ('OPEN', 'WON', 'LOST', 'CLOSED'))
);
--> statement-breakpoint
ALTER TABLE "dispute" ADD CONSTRAINT "dispute_merchant_id_intent_id_payment_intent_merchant_id_id_fk" FOREIGN KEY ("merchant_id","intent_id") REFERENCES "public"."payment_intent"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "dispute" ADD CONSTRAINT "dispute_merchant_id_attempt_id_payment_attempt_merchant_id_id_fk" FOREIGN KEY ("merchant_id","attempt_id") REFERENCES "public"."payment_attempt"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "gateway_event__unhandled__idx" ON "gateway_event" USING btree ("merchant_id","gateway","subject_id") WHERE "gateway_event"."handled_at" is null;--> statement-breakpoint
CREATE INDEX "gateway_event__received__idx" ON "gateway_event" USING btree ("received_at");--> statement-breakpoint
CREATE UNIQUE INDEX "dispute__gateway_dispute__uq" ON "dispute" USING btree ("gateway","gateway_dispute_id");--> statement-breakpoint
CREATE INDEX "dispute__intent__idx" ON "dispute" USING btree ("merchant_id","intent_id");