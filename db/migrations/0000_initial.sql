CREATE TABLE "merchant" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"mode" text NOT NULL,
	"settings" jsonb NOT NULL,
	"created_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "merchant__mode__ck" CHECK ("merchant"."mode" in ('test', 'live'))
);
--> statement-breakpoint
CREATE TABLE "credential" (
	"key_id" text PRIMARY KEY NOT NULL,
	"merchant_id" text NOT NULL,
	"secret_hash" "bytea" NOT NULL,
	"pepper_version" integer NOT NULL,
	"created_at" timestamp(3) with time zone NOT NULL,
	"expires_at" timestamp(3) with time zone,
	"revoked_at" timestamp(3) with time zone
);
--> statement-breakpoint
CREATE TABLE "customer" (
	"merchant_id" text NOT NULL,
	"id" text NOT NULL,
	"details" json NOT NULL,
	"created_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "customer_merchant_id_id_pk" PRIMARY KEY("merchant_id","id")
);
--> statement-breakpoint
CREATE TABLE "payment_method" (
	"merchant_id" text NOT NULL,
	"id" text NOT NULL,
	"customer_id" text NOT NULL,
	"kind" text NOT NULL,
	"gateway" text NOT NULL,
	"gateway_method_id" text NOT NULL,
	"brand" text NOT NULL,
	"country" text,
	"last_four_digit" text NOT NULL,
	"expiry_month" integer NOT NULL,
	"expiry_year" integer NOT NULL,
	"status" text NOT NULL,
	"created_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "payment_method_merchant_id_id_pk" PRIMARY KEY("merchant_id","id"),
	CONSTRAINT "payment_method__status__ck" CHECK ("payment_method"."status" in ('PENDING', 'LIVE', 'DELETED'))
);
--> statement-breakpoint
CREATE TABLE "test_clock" (
	"merchant_id" text NOT NULL,
	"id" text NOT NULL,
	"target_at" timestamp(3) with time zone NOT NULL,
	"created_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "test_clock_merchant_id_id_pk" PRIMARY KEY("merchant_id","id")
);
--> statement-breakpoint
CREATE TABLE "subscription" (
	"merchant_id" text NOT NULL,
	"id" text NOT NULL,
	"customer_id" text NOT NULL,
	"status" text NOT NULL,
	"version" integer NOT NULL,
	"last_transition_id" text NOT NULL,
	"state" jsonb NOT NULL,
	"amount_minor" bigint NOT NULL,
	"currency" char(3) NOT NULL,
	"cycle_count" integer NOT NULL,
	"cycles_charged" integer NOT NULL,
	"wake_at" timestamp(3) with time zone,
	"test_clock_id" text,
	"clock_reached_at" timestamp(3) with time zone,
	"customer_details" json NOT NULL,
	"receipt_id" text,
	"description" text,
	"callback_url" text,
	"cancel_url" text,
	"metadata" json,
	"product_page" json,
	"phone_number_required" boolean NOT NULL,
	"presentment_currency" char(3) NOT NULL,
	"created_at" timestamp(3) with time zone NOT NULL,
	"inserted_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"workflow_started_at" timestamp(3) with time zone,
	CONSTRAINT "subscription_merchant_id_id_pk" PRIMARY KEY("merchant_id","id"),
	CONSTRAINT "subscription__status__ck" CHECK ("subscription"."status" in ('CREATED', 'TRIALING', 'ACTIVE', 'UNPAID', 'PAUSED', 'ENDED')),
	CONSTRAINT "subscription__amount__ck" CHECK ("subscription"."amount_minor" between 0 and 9007199254740991),
	CONSTRAINT "subscription__cycles__ck" CHECK ("subscription"."cycles_charged" <= "subscription"."cycle_count")
);
--> statement-breakpoint
CREATE TABLE "subscription_command" (
	"merchant_id" text NOT NULL,
	"subscription_id" text NOT NULL,
	"command_id" text NOT NULL,
	"kind" text NOT NULL,
	"result" jsonb,
	"accepted_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "subscription_command_merchant_id_subscription_id_command_id_pk" PRIMARY KEY("merchant_id","subscription_id","command_id")
);
--> statement-breakpoint
CREATE TABLE "payment_intent" (
	"merchant_id" text NOT NULL,
	"id" text NOT NULL,
	"subscription_id" text,
	"cycle_number" integer,
	"customer_id" text NOT NULL,
	"payment_method_id" text,
	"amount_minor" bigint NOT NULL,
	"currency" char(3) NOT NULL,
	"presentment_currency" char(3) NOT NULL,
	"status" text NOT NULL,
	"error_code" text,
	"receipt_id" text,
	"metadata" json,
	"customer_details" json NOT NULL,
	"created_at" timestamp(3) with time zone NOT NULL,
	"due_at" timestamp(3) with time zone,
	"succeeded_at" timestamp(3) with time zone,
	CONSTRAINT "payment_intent_merchant_id_id_pk" PRIMARY KEY("merchant_id","id"),
	CONSTRAINT "payment_intent__status__ck" CHECK ("payment_intent"."status" in ('CREATED', 'PENDING', 'SUCCESS', 'FAILED', 'CANCELLED', 'REFUNDED', 'PARTIALLY_REFUNDED')),
	CONSTRAINT "payment_intent__amount__ck" CHECK ("payment_intent"."amount_minor" between 1 and 9007199254740991)
);
--> statement-breakpoint
CREATE TABLE "payment_attempt" (
	"merchant_id" text NOT NULL,
	"id" text NOT NULL,
	"intent_id" text NOT NULL,
	"attempt_number" integer NOT NULL,
	"trigger" text NOT NULL,
	"gateway" text NOT NULL,
	"gateway_key" text NOT NULL,
	"gateway_method_id" text NOT NULL,
	"payment_method_id" text NOT NULL,
	"state" text NOT NULL,
	"amount_minor" bigint NOT NULL,
	"currency" char(3) NOT NULL,
	"gateway_charge_id" text,
	"error_code" text,
	"reason" text,
	"created_at" timestamp(3) with time zone NOT NULL,
	"first_sent_at" timestamp(3) with time zone,
	"last_sent_at" timestamp(3) with time zone,
	"settled_at" timestamp(3) with time zone,
	CONSTRAINT "payment_attempt_merchant_id_id_pk" PRIMARY KEY("merchant_id","id"),
	CONSTRAINT "payment_attempt__state__ck" CHECK ("payment_attempt"."state" in ('CREATED', 'SENDING', 'SUCCEEDED', 'DECLINED', 'UNKNOWN', 'REVIEW')),
	CONSTRAINT "payment_attempt__trigger__ck" CHECK ("payment_attempt"."trigger" in ('checkout', 'scheduled', 'automatic_retry', 'manual_retry', 'new_method'))
);
--> statement-breakpoint
CREATE TABLE "checkout_session" (
	"merchant_id" text NOT NULL,
	"id" text NOT NULL,
	"token_hash" "bytea" NOT NULL,
	"subscription_id" text NOT NULL,
	"expires_at" timestamp(3) with time zone NOT NULL,
	"opened_at" timestamp(3) with time zone,
	"tries" integer DEFAULT 0 NOT NULL,
	"last_error_code" text,
	"created_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "checkout_session_merchant_id_id_pk" PRIMARY KEY("merchant_id","id")
);
--> statement-breakpoint
CREATE TABLE "idempotency_key" (
	"merchant_id" text NOT NULL,
	"route" text NOT NULL,
	"key" text NOT NULL,
	"fingerprint" "bytea" NOT NULL,
	"state" text NOT NULL,
	"owner" uuid NOT NULL,
	"locked_until" timestamp(3) with time zone NOT NULL,
	"command_id" text NOT NULL,
	"http_status" integer,
	"body" text,
	"created_at" timestamp(3) with time zone NOT NULL,
	"expires_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "idempotency_key_merchant_id_route_key_pk" PRIMARY KEY("merchant_id","route","key"),
	CONSTRAINT "idempotency_key__state__ck" CHECK ("idempotency_key"."state" in ('IN_FLIGHT', 'DONE')),
	CONSTRAINT "idempotency_key__fingerprint__ck" CHECK (octet_length("idempotency_key"."fingerprint") = 32)
);
--> statement-breakpoint
CREATE TABLE "webhook_config" (
	"merchant_id" text NOT NULL,
	"id" text NOT NULL,
	"url" text NOT NULL,
	"sealed_signer" "bytea" NOT NULL,
	"sealed_previous_signer" "bytea",
	"previous_signer_until" timestamp(3) with time zone,
	"event_types" text[] NOT NULL,
	"is_active" boolean NOT NULL,
	"deactivated_reason" text,
	"failing_since" timestamp(3) with time zone,
	"created_at" timestamp(3) with time zone NOT NULL,
	"updated_at" timestamp(3) with time zone NOT NULL,
	"deleted_at" timestamp(3) with time zone,
	CONSTRAINT "webhook_config_merchant_id_id_pk" PRIMARY KEY("merchant_id","id")
);
--> statement-breakpoint
CREATE TABLE "event_stream" (
	"merchant_id" text NOT NULL,
	"id" text NOT NULL,
	"last_sequence" bigint NOT NULL,
	CONSTRAINT "event_stream_merchant_id_id_pk" PRIMARY KEY("merchant_id","id")
);
--> statement-breakpoint
CREATE TABLE "outbox_event" (
	"merchant_id" text NOT NULL,
	"id" text NOT NULL,
	"stream_id" text NOT NULL,
	"sequence" bigint NOT NULL,
	"type" text NOT NULL,
	"body" text NOT NULL,
	"occurred_at" timestamp(3) with time zone NOT NULL,
	"inserted_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "outbox_event_merchant_id_id_pk" PRIMARY KEY("merchant_id","id")
);
--> statement-breakpoint
CREATE TABLE "webhook_delivery" (
	"merchant_id" text NOT NULL,
	"event_id" text NOT NULL,
	"config_id" text NOT NULL,
	"stream_id" text NOT NULL,
	"sequence" bigint NOT NULL,
	"state" text NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"next_attempt_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"last_http_status" integer,
	"last_error" text,
	"settled_at" timestamp(3) with time zone,
	"inserted_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "webhook_delivery_merchant_id_event_id_config_id_pk" PRIMARY KEY("merchant_id","event_id","config_id"),
	CONSTRAINT "webhook_delivery__state__ck" CHECK ("webhook_delivery"."state" in ('PENDING', 'DELIVERED', 'FAILED', 'DROPPED'))
);
--> statement-breakpoint
CREATE TABLE "delivery_lease" (
	"merchant_id" text NOT NULL,
	"stream_id" text NOT NULL,
	"config_id" text NOT NULL,
	"owner" uuid NOT NULL,
	"until" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "delivery_lease_merchant_id_stream_id_config_id_pk" PRIMARY KEY("merchant_id","stream_id","config_id")
);
--> statement-breakpoint
ALTER TABLE "credential" ADD CONSTRAINT "credential_merchant_id_merchant_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."merchant"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "customer" ADD CONSTRAINT "customer_merchant_id_merchant_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."merchant"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "payment_method" ADD CONSTRAINT "payment_method_merchant_id_customer_id_customer_merchant_id_id_fk" FOREIGN KEY ("merchant_id","customer_id") REFERENCES "public"."customer"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "test_clock" ADD CONSTRAINT "test_clock_merchant_id_merchant_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."merchant"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "subscription" ADD CONSTRAINT "subscription_merchant_id_customer_id_customer_merchant_id_id_fk" FOREIGN KEY ("merchant_id","customer_id") REFERENCES "public"."customer"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "subscription" ADD CONSTRAINT "subscription_merchant_id_test_clock_id_test_clock_merchant_id_id_fk" FOREIGN KEY ("merchant_id","test_clock_id") REFERENCES "public"."test_clock"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "subscription_command" ADD CONSTRAINT "subscription_command_merchant_id_subscription_id_subscription_merchant_id_id_fk" FOREIGN KEY ("merchant_id","subscription_id") REFERENCES "public"."subscription"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "payment_intent" ADD CONSTRAINT "payment_intent_merchant_id_subscription_id_subscription_merchant_id_id_fk" FOREIGN KEY ("merchant_id","subscription_id") REFERENCES "public"."subscription"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "payment_attempt" ADD CONSTRAINT "payment_attempt_merchant_id_intent_id_payment_intent_merchant_id_id_fk" FOREIGN KEY ("merchant_id","intent_id") REFERENCES "public"."payment_intent"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "checkout_session" ADD CONSTRAINT "checkout_session_merchant_id_subscription_id_subscription_merchant_id_id_fk" FOREIGN KEY ("merchant_id","subscription_id") REFERENCES "public"."subscription"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_config" ADD CONSTRAINT "webhook_config_merchant_id_merchant_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."merchant"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_delivery" ADD CONSTRAINT "webhook_delivery_merchant_id_event_id_outbox_event_merchant_id_id_fk" FOREIGN KEY ("merchant_id","event_id") REFERENCES "public"."outbox_event"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_delivery" ADD CONSTRAINT "webhook_delivery_merchant_id_config_id_webhook_config_merchant_id_id_fk" FOREIGN KEY ("merchant_id","config_id") REFERENCES "public"."webhook_config"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "credential__merchant__idx" ON "credential" USING btree ("merchant_id");--> statement-breakpoint
CREATE UNIQUE INDEX "payment_method__gateway_method__uq" ON "payment_method" USING btree ("gateway","gateway_method_id");--> statement-breakpoint
CREATE INDEX "subscription__unstarted__idx" ON "subscription" USING btree ("inserted_at") WHERE "subscription"."workflow_started_at" is null;--> statement-breakpoint
CREATE INDEX "subscription__wake__idx" ON "subscription" USING btree ("wake_at") WHERE "subscription"."wake_at" is not null and "subscription"."test_clock_id" is null;--> statement-breakpoint
CREATE INDEX "subscription__clock__idx" ON "subscription" USING btree ("merchant_id","test_clock_id","clock_reached_at") WHERE "subscription"."status" <> 'ENDED' and "subscription"."test_clock_id" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "payment_intent__subscription_cycle__uq" ON "payment_intent" USING btree ("merchant_id","subscription_id","cycle_number") WHERE "payment_intent"."cycle_number" is not null;--> statement-breakpoint
CREATE INDEX "payment_intent__customer__idx" ON "payment_intent" USING btree ("merchant_id","customer_id");--> statement-breakpoint
CREATE UNIQUE INDEX "payment_attempt__gateway_key__uq" ON "payment_attempt" USING btree ("gateway_key");--> statement-breakpoint
CREATE UNIQUE INDEX "payment_attempt__number__uq" ON "payment_attempt" USING btree ("merchant_id","intent_id","attempt_number");--> statement-breakpoint
CREATE UNIQUE INDEX "payment_attempt__one_open__uq" ON "payment_attempt" USING btree ("merchant_id","intent_id") WHERE "payment_attempt"."state" in ('CREATED', 'SENDING', 'UNKNOWN', 'REVIEW');--> statement-breakpoint
CREATE UNIQUE INDEX "payment_attempt__one_success__uq" ON "payment_attempt" USING btree ("merchant_id","intent_id") WHERE "payment_attempt"."state" = 'SUCCEEDED';--> statement-breakpoint
CREATE INDEX "payment_attempt__open__idx" ON "payment_attempt" USING btree ("last_sent_at") WHERE "payment_attempt"."state" in ('CREATED', 'SENDING', 'UNKNOWN');--> statement-breakpoint
CREATE UNIQUE INDEX "checkout_session__token__uq" ON "checkout_session" USING btree ("token_hash");--> statement-breakpoint
CREATE INDEX "checkout_session__subscription__idx" ON "checkout_session" USING btree ("merchant_id","subscription_id");--> statement-breakpoint
CREATE INDEX "idempotency_key__expiry__idx" ON "idempotency_key" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "webhook_config__active__idx" ON "webhook_config" USING btree ("merchant_id","is_active");--> statement-breakpoint
CREATE UNIQUE INDEX "outbox_event__sequence__uq" ON "outbox_event" USING btree ("merchant_id","stream_id","sequence");--> statement-breakpoint
CREATE INDEX "webhook_delivery__pending_stream__idx" ON "webhook_delivery" USING btree ("merchant_id","stream_id","config_id","sequence") WHERE "webhook_delivery"."state" = 'PENDING';--> statement-breakpoint
CREATE INDEX "webhook_delivery__pending_due__idx" ON "webhook_delivery" USING btree ("next_attempt_at") WHERE "webhook_delivery"."state" = 'PENDING';