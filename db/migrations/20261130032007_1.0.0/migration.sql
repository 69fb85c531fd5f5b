CREATE TABLE "checkout_session" (
	"merchant_id" text,
	"id" text,
	"token_hash" bytea NOT NULL,
	"purpose" text DEFAULT 'subscription' NOT NULL,
	"subscription_id" text,
	"intent_id" text,
	"setup_method_id" text,
	"expires_at" timestamp(3) with time zone NOT NULL,
	"opened_at" timestamp(3) with time zone,
	"tries" integer DEFAULT 0 NOT NULL,
	"gateways" text[] DEFAULT '{}'::text[] NOT NULL,
	"last_error_code" text,
	"created_at" timestamp(3) with time zone NOT NULL,
	"inserted_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "checkout_session_pkey" PRIMARY KEY("merchant_id","id"),
	CONSTRAINT "checkout_session__purpose__ck" CHECK ("purpose" in ('subscription', 'payment', 'setup_method', 'update_method')),
	CONSTRAINT "checkout_session__subject__ck" CHECK (num_nonnulls("subscription_id", "intent_id", "setup_method_id") = 1)
);
--> statement-breakpoint
CREATE TABLE "checkout_try" (
	"merchant_id" text,
	"session_id" text,
	"key" bytea,
	"error_code" text,
	"created_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "checkout_try_pkey" PRIMARY KEY("merchant_id","session_id","key")
);
--> statement-breakpoint
CREATE TABLE "setup_method" (
	"merchant_id" text,
	"id" text,
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
	"locale" text,
	"created_at" timestamp(3) with time zone NOT NULL,
	"expires_at" timestamp(3) with time zone NOT NULL,
	"completed_at" timestamp(3) with time zone,
	CONSTRAINT "setup_method_pkey" PRIMARY KEY("merchant_id","id"),
	CONSTRAINT "setup_method__status__ck" CHECK ("status" in ('CREATED', 'SUCCESS', 'FAILED', 'CANCELLED'))
);
--> statement-breakpoint
CREATE TABLE "consent" (
	"merchant_id" text,
	"id" text,
	"customer_id" text NOT NULL,
	"session_id" text NOT NULL,
	"subscription_id" text,
	"intent_id" text,
	"setup_method_id" text,
	"locale" text NOT NULL,
	"text_version" text NOT NULL,
	"shown" text NOT NULL,
	"digest" bytea NOT NULL,
	"amount_minor" bigint,
	"currency" char(3),
	"created_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "consent_pkey" PRIMARY KEY("merchant_id","id")
);
--> statement-breakpoint
CREATE TABLE "customer" (
	"merchant_id" text,
	"id" text,
	"details" json NOT NULL,
	"normal_email" text,
	"created_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "customer_pkey" PRIMARY KEY("merchant_id","id"),
	CONSTRAINT "customer__normal_email__ck" CHECK (("details"->>'email' is null) = ("normal_email" is null))
);
--> statement-breakpoint
CREATE TABLE "payment_method" (
	"merchant_id" text,
	"id" text,
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
	"entered_at" timestamp(3) with time zone,
	"token_hash" bytea,
	"created_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "payment_method_pkey" PRIMARY KEY("merchant_id","id"),
	CONSTRAINT "payment_method__status__ck" CHECK ("status" in ('PENDING', 'LIVE', 'DELETED'))
);
--> statement-breakpoint
CREATE TABLE "declaration" (
	"merchant_id" text,
	"id" text,
	"token_hash" bytea NOT NULL,
	"kind" text NOT NULL,
	"name" text NOT NULL,
	"email" text NOT NULL,
	"reference" text NOT NULL,
	"reason" text,
	"end_on" text,
	"locale" text NOT NULL,
	"created_at" timestamp(3) with time zone NOT NULL,
	"outcome" text,
	"subscription_id" text,
	"intent_id" text,
	"is_in_period" boolean,
	"refundable" json,
	CONSTRAINT "declaration_pkey" PRIMARY KEY("merchant_id","id"),
	CONSTRAINT "declaration__kind__ck" CHECK ("kind" in ('cancellation', 'withdrawal')),
	CONSTRAINT "declaration__outcome__ck" CHECK ("outcome" in ('executed', 'told', 'unmatched'))
);
--> statement-breakpoint
CREATE TABLE "gateway_event" (
	"merchant_id" text,
	"gateway" text,
	"event_id" text,
	"type" text NOT NULL,
	"subject_id" text,
	"hint" json NOT NULL,
	"received_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"handled_at" timestamp(3) with time zone,
	"swept_at" timestamp(3) with time zone,
	CONSTRAINT "gateway_event_pkey" PRIMARY KEY("merchant_id","gateway","event_id")
);
--> statement-breakpoint
CREATE TABLE "credential" (
	"key_id" text PRIMARY KEY,
	"merchant_id" text NOT NULL,
	"secret_hash" bytea NOT NULL,
	"pepper_id" bytea NOT NULL,
	"is_read_only" boolean DEFAULT false NOT NULL,
	"created_at" timestamp(3) with time zone NOT NULL,
	"expires_at" timestamp(3) with time zone,
	"replaced_at" timestamp(3) with time zone,
	"revoked_at" timestamp(3) with time zone,
	"last_used_at" timestamp(3) with time zone
);
--> statement-breakpoint
CREATE TABLE "idempotency_key" (
	"merchant_id" text,
	"route" text,
	"key" text,
	"fingerprint" bytea NOT NULL,
	"state" text NOT NULL,
	"owner" uuid NOT NULL,
	"locked_until" timestamp(3) with time zone NOT NULL,
	"command_id" text NOT NULL,
	"http_status" integer,
	"body" text,
	"created_at" timestamp(3) with time zone NOT NULL,
	"expires_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "idempotency_key_pkey" PRIMARY KEY("merchant_id","route","key"),
	CONSTRAINT "idempotency_key__state__ck" CHECK ("state" in ('IN_FLIGHT', 'DONE')),
	CONSTRAINT "idempotency_key__fingerprint__ck" CHECK (octet_length("fingerprint") = 32)
);
--> statement-breakpoint
CREATE TABLE "merchant_gateway" (
	"merchant_id" text,
	"name" text,
	"mode" text NOT NULL,
	"sealed_key" bytea NOT NULL,
	"key_ending" text NOT NULL,
	"sealed_webhook_secret" bytea,
	"sealed_previous_webhook_secret" bytea,
	"previous_webhook_secret_until" timestamp(3) with time zone,
	"is_current" boolean NOT NULL,
	"blocked_at" timestamp(3) with time zone,
	"created_at" timestamp(3) with time zone NOT NULL,
	"updated_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "merchant_gateway_pkey" PRIMARY KEY("merchant_id","name"),
	CONSTRAINT "merchant_gateway__mode__ck" CHECK ("mode" in ('test', 'live'))
);
--> statement-breakpoint
CREATE TABLE "merchant" (
	"id" text PRIMARY KEY,
	"name" text NOT NULL,
	"mode" text NOT NULL,
	"settings" jsonb NOT NULL,
	"created_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "merchant__mode__ck" CHECK ("mode" in ('test', 'live'))
);
--> statement-breakpoint
CREATE TABLE "operator_action" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid(),
	"at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"acted_by" text NOT NULL,
	"command" text NOT NULL,
	"subject" text NOT NULL,
	"merchant_id" text,
	"facts" jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "dispute" (
	"merchant_id" text,
	"id" text,
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
	CONSTRAINT "dispute_pkey" PRIMARY KEY("merchant_id","id"),
	CONSTRAINT "dispute__status__ck" CHECK ("status" in ('OPEN', 'WON', 'LOST', 'CLOSED'))
);
--> statement-breakpoint
CREATE TABLE "payment_attempt" (
	"merchant_id" text,
	"id" text,
	"intent_id" text NOT NULL,
	"attempt_number" integer NOT NULL,
	"command_id" text,
	"session_id" text,
	"trigger" text NOT NULL,
	"gateway" text NOT NULL,
	"gateway_key" text NOT NULL,
	"gateway_method_id" text NOT NULL,
	"payment_method_id" text NOT NULL,
	"amount_minor" bigint NOT NULL,
	"currency" char(3) NOT NULL,
	"description" text,
	"statement_suffix" text,
	"gateway_code" text,
	"network_code" text,
	"advice" jsonb,
	"reason" text,
	"is_account_refused" boolean DEFAULT false NOT NULL,
	"payer_url" text,
	"payer_asked_at" timestamp(3) with time zone,
	"payer_left_at" timestamp(3) with time zone,
	"created_at" timestamp(3) with time zone NOT NULL,
	"cause" jsonb,
	"sent_at" timestamp(3) with time zone[] DEFAULT array[now()]::timestamp(3) with time zone[] NOT NULL,
	"lookups" integer DEFAULT 0 NOT NULL,
	"heard_at" timestamp(3) with time zone,
	"unanswered_at" timestamp(3) with time zone,
	"state" text NOT NULL,
	"gateway_charge_id" text,
	"error_code" text,
	"settled_at" timestamp(3) with time zone,
	"fraud_warned_at" timestamp(3) with time zone,
	"settled_by" text,
	CONSTRAINT "payment_attempt_pkey" PRIMARY KEY("merchant_id","id"),
	CONSTRAINT "payment_attempt__state__ck" CHECK ("state" in ('SENDING', 'SUCCEEDED', 'DECLINED', 'UNSENT', 'UNKNOWN', 'REVIEW')),
	CONSTRAINT "payment_attempt__trigger__ck" CHECK ("trigger" in ('checkout', 'scheduled', 'automatic_retry', 'manual_retry', 'new_method', 'authentication', 'one_time', 'tokenised')),
	CONSTRAINT "payment_attempt__settled_by__ck" CHECK ("settled_by" in ('gateway', 'event', 'look_up', 'person', 'void'))
);
--> statement-breakpoint
CREATE TABLE "payment_intent" (
	"merchant_id" text,
	"id" text,
	"kind" text DEFAULT 'cycle' NOT NULL,
	"subscription_id" text,
	"cycle_number" integer,
	"link_id" text,
	"customer_id" text NOT NULL,
	"amount_minor" bigint NOT NULL,
	"currency" char(3) NOT NULL,
	"presentment_currency" char(3) NOT NULL,
	"refunded_minor" bigint DEFAULT 0 NOT NULL,
	"receipt_id" text,
	"description" text,
	"comments" text,
	"store_front_id" text,
	"callback_url" text,
	"cancel_url" text,
	"payment_methods" json,
	"phone_number_required" boolean DEFAULT false NOT NULL,
	"locale" text,
	"tokenise" boolean DEFAULT false NOT NULL,
	"metadata" json,
	"product_page" json,
	"customer_details" json NOT NULL,
	"normal_email" text,
	"created_at" timestamp(3) with time zone NOT NULL,
	"due_at" timestamp(3) with time zone,
	"checkout_expires_at" timestamp(3) with time zone,
	"adopted_at" timestamp(3) with time zone,
	"payment_method_id" text,
	"status" text NOT NULL,
	"error_code" text,
	"succeeded_at" timestamp(3) with time zone,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "payment_intent_pkey" PRIMARY KEY("merchant_id","id"),
	CONSTRAINT "payment_intent__status__ck" CHECK ("status" in ('CREATED', 'PENDING', 'SUCCESS', 'FAILED', 'CANCELLED', 'REFUNDED', 'PARTIALLY_REFUNDED')),
	CONSTRAINT "payment_intent__kind__ck" CHECK ("kind" in ('cycle', 'one_time', 'tokenised', 'hosted')),
	CONSTRAINT "payment_intent__refunded__ck" CHECK ("refunded_minor" between 0 and "amount_minor"),
	CONSTRAINT "payment_intent__amount__ck" CHECK ("amount_minor" between 1 and 9007199254740991),
	CONSTRAINT "payment_intent__normal_email__ck" CHECK (("customer_details"->>'email' is null) = ("normal_email" is null))
);
--> statement-breakpoint
CREATE TABLE "payment_review" (
	"merchant_id" text,
	"subject_id" text,
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
	CONSTRAINT "payment_review_pkey" PRIMARY KEY("merchant_id","subject_id"),
	CONSTRAINT "payment_review__outcome__ck" CHECK ("outcome" in ('paid', 'declined', 'not_charged', 'refunded', 'not_refunded')),
	CONSTRAINT "payment_review__decided__ck" CHECK (("outcome" is null) = ("decided_at" is null))
);
--> statement-breakpoint
CREATE TABLE "refund" (
	"merchant_id" text,
	"id" text,
	"intent_id" text NOT NULL,
	"state" text NOT NULL,
	"amount_minor" bigint NOT NULL,
	"currency" char(3) NOT NULL,
	"gateway_key" text NOT NULL,
	"gateway_charge_id" text NOT NULL,
	"gateway_refund_id" text,
	"late_attempt_id" text,
	"reason" text,
	"created_at" timestamp(3) with time zone NOT NULL,
	"refunded_at" timestamp(3) with time zone,
	"first_sent_at" timestamp(3) with time zone,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"adopted_at" timestamp(3) with time zone,
	CONSTRAINT "refund_pkey" PRIMARY KEY("merchant_id","id"),
	CONSTRAINT "refund__state__ck" CHECK ("state" in ('CREATED', 'SENDING', 'UNKNOWN', 'PENDING', 'REVIEW', 'SUCCEEDED', 'REFUSED')),
	CONSTRAINT "refund__amount__ck" CHECK ("amount_minor" between 1 and 9007199254740991)
);
--> statement-breakpoint
CREATE TABLE "portal_session" (
	"merchant_id" text,
	"id" text,
	"customer_id" text NOT NULL,
	"token_hash" bytea NOT NULL,
	"browser_hash" bytea,
	"return_url" text,
	"created_at" timestamp(3) with time zone NOT NULL,
	"expires_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "portal_session_pkey" PRIMARY KEY("merchant_id","id")
);
--> statement-breakpoint
CREATE TABLE "link_use" (
	"merchant_id" text NOT NULL,
	"link_id" text NOT NULL,
	"address_hash" bytea NOT NULL,
	"token_hash" bytea PRIMARY KEY,
	"begun_at" timestamp(3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "subscription_command" (
	"merchant_id" text,
	"subscription_id" text,
	"command_id" text,
	"kind" text NOT NULL,
	"result" jsonb,
	"accepted_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "subscription_command_pkey" PRIMARY KEY("merchant_id","subscription_id","command_id")
);
--> statement-breakpoint
CREATE TABLE "subscription_entry" (
	"merchant_id" text,
	"subscription_id" text,
	"version" integer,
	"at" timestamp(3) with time zone NOT NULL,
	"recorded_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"status" text NOT NULL,
	"kind" text NOT NULL,
	"actor" text NOT NULL,
	"facts" jsonb NOT NULL,
	CONSTRAINT "subscription_entry_pkey" PRIMARY KEY("merchant_id","subscription_id","version"),
	CONSTRAINT "subscription_entry__status__ck" CHECK ("status" in ('CREATED', 'TRIALING', 'ACTIVE', 'UNPAID', 'PAUSED', 'ENDED')),
	CONSTRAINT "subscription_entry__actor__ck" CHECK ("actor" in ('merchant', 'operator', 'payer', 'schedule', 'retry_plan', 'gateway'))
);
--> statement-breakpoint
CREATE TABLE "subscription_import" (
	"merchant_id" text,
	"import_id" text,
	"subscription_id" text NOT NULL,
	"gateway" text NOT NULL,
	"gateway_customer_id" text,
	"terms" jsonb NOT NULL,
	"status" text NOT NULL,
	"cycles_charged" integer NOT NULL,
	"next_index" integer NOT NULL,
	"imported_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "subscription_import_pkey" PRIMARY KEY("merchant_id","import_id"),
	CONSTRAINT "subscription_import__status__ck" CHECK ("status" in ('ACTIVE', 'TRIALING'))
);
--> statement-breakpoint
CREATE TABLE "subscription_link" (
	"merchant_id" text,
	"id" text,
	"code" text NOT NULL,
	"terms" jsonb,
	"payment" json,
	"customer_id" text,
	"customer_details" json NOT NULL,
	"receipt_id" text,
	"description" text,
	"callback_url" text,
	"cancel_url" text,
	"product_page" json,
	"phone_number_required" boolean NOT NULL,
	"locale" text,
	"multi_use_limit" bigint NOT NULL,
	"uses" integer DEFAULT 0 NOT NULL,
	"created_at" timestamp(3) with time zone NOT NULL,
	"expires_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "subscription_link_pkey" PRIMARY KEY("merchant_id","id"),
	CONSTRAINT "subscription_link__goods__ck" CHECK (num_nonnulls("terms", "payment") = 1),
	CONSTRAINT "subscription_link__uses__ck" CHECK ("uses" between 0 and "multi_use_limit")
);
--> statement-breakpoint
CREATE TABLE "subscription" (
	"merchant_id" text,
	"id" text,
	"customer_id" text NOT NULL,
	"test_clock_id" text,
	"link_id" text,
	"customer_details" json NOT NULL,
	"normal_email" text,
	"receipt_id" text,
	"description" text,
	"callback_url" text,
	"cancel_url" text,
	"metadata" json,
	"product_page" json,
	"phone_number_required" boolean NOT NULL,
	"locale" text,
	"presentment_currency" char(3) NOT NULL,
	"created_at" timestamp(3) with time zone NOT NULL,
	"inserted_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"workflow_started_at" timestamp(3) with time zone,
	"amount_minor" bigint NOT NULL,
	"currency" char(3) NOT NULL,
	"cycle_count" integer NOT NULL,
	"cycles_charged" integer NOT NULL,
	"version" integer NOT NULL,
	"last_transition_id" text NOT NULL,
	"wake_at" timestamp(3) with time zone,
	"updated_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"status" text NOT NULL,
	"clock_reached_at" timestamp(3) with time zone,
	"swept_at" timestamp(3) with time zone,
	"held_at" timestamp(3) with time zone,
	"state" json NOT NULL,
	CONSTRAINT "subscription_pkey" PRIMARY KEY("merchant_id","id"),
	CONSTRAINT "subscription__status__ck" CHECK ("status" in ('CREATED', 'TRIALING', 'ACTIVE', 'UNPAID', 'PAUSED', 'ENDED')),
	CONSTRAINT "subscription__amount__ck" CHECK ("amount_minor" between 0 and 9007199254740991),
	CONSTRAINT "subscription__cycles__ck" CHECK ("cycles_charged" <= "cycle_count"),
	CONSTRAINT "subscription__normal_email__ck" CHECK (("customer_details"->>'email' is null) = ("normal_email" is null))
);
--> statement-breakpoint
CREATE TABLE "test_clock" (
	"merchant_id" text,
	"id" text,
	"target_at" timestamp(3) with time zone NOT NULL,
	"sent_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"created_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "test_clock_pkey" PRIMARY KEY("merchant_id","id")
);
--> statement-breakpoint
CREATE TABLE "sweep_count" (
	"kind" text PRIMARY KEY,
	"repaired" bigint NOT NULL,
	"last_at" timestamp(3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "event_feed" (
	"merchant_id" text PRIMARY KEY,
	"last_position" bigint NOT NULL,
	"expired_position" bigint DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "event_stream" (
	"merchant_id" text,
	"id" text,
	"last_sequence" bigint NOT NULL,
	CONSTRAINT "event_stream_pkey" PRIMARY KEY("merchant_id","id")
);
--> statement-breakpoint
CREATE TABLE "feed_entry" (
	"merchant_id" text NOT NULL,
	"stream_id" text NOT NULL,
	"first_sequence" bigint NOT NULL,
	"events" integer NOT NULL,
	"position" bigint,
	"mark" bigint
);
--> statement-breakpoint
CREATE TABLE "outbox_event" (
	"merchant_id" text,
	"id" text,
	"stream_id" text NOT NULL,
	"sequence" bigint NOT NULL,
	"type" text NOT NULL,
	"body" text NOT NULL,
	"occurred_at" timestamp(3) with time zone NOT NULL,
	"inserted_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"body_deleted_at" timestamp(3) with time zone,
	CONSTRAINT "outbox_event_pkey" PRIMARY KEY("merchant_id","id")
);
--> statement-breakpoint
CREATE TABLE "webhook_attempt" (
	"merchant_id" text,
	"event_id" text,
	"config_id" text,
	"attempt" integer,
	"is_manual" boolean NOT NULL,
	"at" timestamp(3) with time zone NOT NULL,
	"http_status" integer,
	"error" text,
	"duration_ms" integer NOT NULL,
	"answer" text,
	"next_attempt_at" timestamp(3) with time zone,
	CONSTRAINT "webhook_attempt_pkey" PRIMARY KEY("merchant_id","event_id","config_id","attempt")
);
--> statement-breakpoint
CREATE TABLE "webhook_config" (
	"merchant_id" text,
	"id" text,
	"url" text NOT NULL,
	"sealed_signer" bytea NOT NULL,
	"sealed_previous_signer" bytea,
	"previous_signer_until" timestamp(3) with time zone,
	"event_types" text[] NOT NULL,
	"is_active" boolean NOT NULL,
	"deactivated_reason" text,
	"failing_since" timestamp(3) with time zone,
	"consecutive_failures" integer DEFAULT 0 NOT NULL,
	"paused_until" timestamp(3) with time zone,
	"warnings" integer DEFAULT 0 NOT NULL,
	"missed_since" timestamp(3) with time zone,
	"created_at" timestamp(3) with time zone NOT NULL,
	"updated_at" timestamp(3) with time zone NOT NULL,
	"deleted_at" timestamp(3) with time zone,
	CONSTRAINT "webhook_config_pkey" PRIMARY KEY("merchant_id","id"),
	CONSTRAINT "webhook_config__deactivated_reason__ck" CHECK ("deactivated_reason" in ('endpoint_gone', 'failing_for_five_days'))
);
--> statement-breakpoint
CREATE TABLE "webhook_delivery" (
	"merchant_id" text,
	"event_id" text,
	"config_id" text,
	"stream_id" text NOT NULL,
	"sequence" bigint NOT NULL,
	"state" text NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"is_resent" boolean DEFAULT false NOT NULL,
	"resent_after" integer DEFAULT 0 NOT NULL,
	"recovery_id" text,
	"next_attempt_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"last_http_status" integer,
	"last_error" text,
	"duration_ms" integer,
	"answer" text,
	"settled_at" timestamp(3) with time zone,
	"claimed_until" timestamp(3) with time zone,
	"inserted_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "webhook_delivery_pkey" PRIMARY KEY("merchant_id","event_id","config_id"),
	CONSTRAINT "webhook_delivery__state__ck" CHECK ("state" in ('PENDING', 'DELIVERED', 'FAILED', 'DROPPED'))
);
--> statement-breakpoint
CREATE TABLE "webhook_recovery" (
	"merchant_id" text,
	"id" text,
	"config_id" text NOT NULL,
	"events" integer NOT NULL,
	"created_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "webhook_recovery_pkey" PRIMARY KEY("merchant_id","id")
);
--> statement-breakpoint
CREATE UNIQUE INDEX "checkout_session__token__uq" ON "checkout_session" ("token_hash");--> statement-breakpoint
CREATE INDEX "checkout_session__subscription__idx" ON "checkout_session" ("merchant_id","subscription_id");--> statement-breakpoint
CREATE INDEX "checkout_session__inserted__idx" ON "checkout_session" ("inserted_at");--> statement-breakpoint
CREATE INDEX "checkout_session__intent__idx" ON "checkout_session" ("intent_id","merchant_id");--> statement-breakpoint
CREATE UNIQUE INDEX "consent__shown__uq" ON "consent" ("merchant_id","session_id","digest");--> statement-breakpoint
CREATE INDEX "consent__created__idx" ON "consent" ("merchant_id","created_at","id");--> statement-breakpoint
CREATE INDEX "consent__customer__idx" ON "consent" ("merchant_id","customer_id");--> statement-breakpoint
CREATE INDEX "consent__subscription__idx" ON "consent" ("merchant_id","subscription_id");--> statement-breakpoint
CREATE INDEX "customer__created__idx" ON "customer" ("merchant_id","created_at","id");--> statement-breakpoint
CREATE INDEX "customer__normal_email__idx" ON "customer" ("merchant_id","normal_email") WHERE "normal_email" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "payment_method__gateway_method__uq" ON "payment_method" ("gateway","gateway_method_id");--> statement-breakpoint
CREATE INDEX "payment_method__customer__idx" ON "payment_method" ("merchant_id","customer_id");--> statement-breakpoint
CREATE UNIQUE INDEX "declaration__token__uq" ON "declaration" ("token_hash");--> statement-breakpoint
CREATE INDEX "declaration__created__idx" ON "declaration" ("merchant_id","created_at","id");--> statement-breakpoint
CREATE INDEX "declaration__open__idx" ON "declaration" ("created_at") WHERE "outcome" is null;--> statement-breakpoint
CREATE INDEX "gateway_event__unhandled__idx" ON "gateway_event" ("merchant_id","gateway","subject_id") WHERE "handled_at" is null;--> statement-breakpoint
CREATE INDEX "gateway_event__received__idx" ON "gateway_event" ("received_at");--> statement-breakpoint
CREATE INDEX "credential__merchant__idx" ON "credential" ("merchant_id");--> statement-breakpoint
CREATE INDEX "idempotency_key__command__idx" ON "idempotency_key" ("merchant_id","command_id");--> statement-breakpoint
CREATE INDEX "idempotency_key__expiry__idx" ON "idempotency_key" ("expires_at");--> statement-breakpoint
CREATE UNIQUE INDEX "merchant_gateway__account__uq" ON "merchant_gateway" ("name","mode");--> statement-breakpoint
CREATE UNIQUE INDEX "merchant_gateway__current__uq" ON "merchant_gateway" ("merchant_id") WHERE "is_current";--> statement-breakpoint
CREATE INDEX "operator_action__at__idx" ON "operator_action" ("at");--> statement-breakpoint
CREATE UNIQUE INDEX "dispute__gateway_dispute__uq" ON "dispute" ("gateway","gateway_dispute_id");--> statement-breakpoint
CREATE INDEX "dispute__intent__idx" ON "dispute" ("merchant_id","intent_id");--> statement-breakpoint
CREATE UNIQUE INDEX "payment_attempt__gateway_key__uq" ON "payment_attempt" ("gateway_key");--> statement-breakpoint
CREATE UNIQUE INDEX "payment_attempt__number__uq" ON "payment_attempt" ("merchant_id","intent_id","attempt_number");--> statement-breakpoint
CREATE UNIQUE INDEX "payment_attempt__command__uq" ON "payment_attempt" ("merchant_id","intent_id","command_id") WHERE "command_id" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "payment_attempt__one_open__uq" ON "payment_attempt" ("merchant_id","intent_id") WHERE "state" in ('SENDING', 'UNSENT', 'UNKNOWN', 'REVIEW');--> statement-breakpoint
CREATE INDEX "payment_attempt__unpaid__idx" ON "payment_attempt" ("merchant_id","payment_method_id","created_at") WHERE "state" <> 'SUCCEEDED';--> statement-breakpoint
CREATE INDEX "payment_attempt__refused__idx" ON "payment_attempt" ("merchant_id","gateway") WHERE "is_account_refused" and "state" in ('SENDING', 'UNSENT');--> statement-breakpoint
CREATE UNIQUE INDEX "payment_attempt__one_success__uq" ON "payment_attempt" ("merchant_id","intent_id") WHERE "state" = 'SUCCEEDED';--> statement-breakpoint
CREATE INDEX "payment_attempt__charge__idx" ON "payment_attempt" ("gateway_charge_id") WHERE "gateway_charge_id" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "payment_intent__subscription_cycle__uq" ON "payment_intent" ("merchant_id","subscription_id","cycle_number") WHERE "subscription_id" is not null;--> statement-breakpoint
CREATE INDEX "payment_intent__created__idx" ON "payment_intent" ("merchant_id","created_at","id");--> statement-breakpoint
CREATE INDEX "payment_intent__succeeded__idx" ON "payment_intent" ("merchant_id","succeeded_at","id") WHERE "succeeded_at" is not null;--> statement-breakpoint
CREATE INDEX "payment_intent__receipt__idx" ON "payment_intent" ("merchant_id","receipt_id") WHERE "receipt_id" is not null;--> statement-breakpoint
CREATE INDEX "payment_intent__normal_email__idx" ON "payment_intent" ("merchant_id","normal_email") WHERE "normal_email" is not null;--> statement-breakpoint
CREATE INDEX "payment_intent__open__idx" ON "payment_intent" ("updated_at") WHERE "kind" <> 'cycle' and "status" in ('CREATED', 'PENDING') and ("kind" <> 'hosted' or "status" = 'PENDING');--> statement-breakpoint
CREATE INDEX "payment_intent__link__idx" ON "payment_intent" ("merchant_id","link_id","checkout_expires_at") WHERE "link_id" is not null and "status" in ('CREATED', 'FAILED');--> statement-breakpoint
CREATE INDEX "payment_intent__customer__idx" ON "payment_intent" ("merchant_id","customer_id");--> statement-breakpoint
CREATE UNIQUE INDEX "payment_review__found__uq" ON "payment_review" ("outcome","gateway_id") WHERE "gateway_id" is not null;--> statement-breakpoint
CREATE INDEX "payment_review__open__idx" ON "payment_review" ("updated_at") WHERE "closed_at" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "refund__gateway_key__uq" ON "refund" ("gateway_key");--> statement-breakpoint
CREATE UNIQUE INDEX "refund__late_attempt__uq" ON "refund" ("merchant_id","late_attempt_id") WHERE "late_attempt_id" is not null;--> statement-breakpoint
CREATE INDEX "refund__intent__idx" ON "refund" ("merchant_id","intent_id");--> statement-breakpoint
CREATE INDEX "refund__gateway_refund__idx" ON "refund" ("gateway_refund_id");--> statement-breakpoint
CREATE INDEX "refund__created__idx" ON "refund" ("merchant_id","created_at","id");--> statement-breakpoint
CREATE INDEX "refund__refunded__idx" ON "refund" ("merchant_id","refunded_at","id") WHERE "refunded_at" is not null;--> statement-breakpoint
CREATE INDEX "refund__open__idx" ON "refund" ("updated_at") WHERE "state" in ('CREATED', 'SENDING', 'UNKNOWN', 'PENDING', 'REVIEW');--> statement-breakpoint
CREATE UNIQUE INDEX "portal_session__token__uq" ON "portal_session" ("token_hash");--> statement-breakpoint
CREATE INDEX "portal_session__expiry__idx" ON "portal_session" ("expires_at");--> statement-breakpoint
CREATE INDEX "link_use__address__idx" ON "link_use" ("merchant_id","link_id","address_hash","begun_at");--> statement-breakpoint
CREATE INDEX "link_use__begun__idx" ON "link_use" ("begun_at");--> statement-breakpoint
CREATE INDEX "subscription_entry__operator__idx" ON "subscription_entry" ("recorded_at") WHERE "actor" = 'operator';--> statement-breakpoint
CREATE UNIQUE INDEX "subscription_import__subscription__uq" ON "subscription_import" ("merchant_id","subscription_id");--> statement-breakpoint
CREATE INDEX "subscription_import__payer__idx" ON "subscription_import" ("merchant_id","gateway","gateway_customer_id");--> statement-breakpoint
CREATE UNIQUE INDEX "subscription_link__code__uq" ON "subscription_link" ("code");--> statement-breakpoint
CREATE INDEX "subscription__created__idx" ON "subscription" ("merchant_id","created_at","id");--> statement-breakpoint
CREATE INDEX "subscription__receipt__idx" ON "subscription" ("merchant_id","receipt_id") WHERE "receipt_id" is not null;--> statement-breakpoint
CREATE INDEX "subscription__normal_email__idx" ON "subscription" ("merchant_id","normal_email") WHERE "normal_email" is not null;--> statement-breakpoint
CREATE INDEX "subscription__customer__idx" ON "subscription" ("merchant_id","customer_id");--> statement-breakpoint
CREATE INDEX "subscription__unstarted__idx" ON "subscription" ("inserted_at") WHERE "workflow_started_at" is null;--> statement-breakpoint
CREATE INDEX "subscription__live__idx" ON "subscription" ("workflow_started_at") WHERE "status" <> 'ENDED' and "held_at" is null;--> statement-breakpoint
CREATE INDEX "subscription__held__idx" ON "subscription" ("held_at") WHERE "held_at" is not null;--> statement-breakpoint
CREATE INDEX "subscription__wake__idx" ON "subscription" ("wake_at") WHERE "wake_at" is not null and "test_clock_id" is null;--> statement-breakpoint
CREATE INDEX "subscription__behind__idx" ON "subscription" ("inserted_at") WHERE "test_clock_id" is not null and "held_at" is null;--> statement-breakpoint
CREATE INDEX "subscription__clock__idx" ON "subscription" ("merchant_id","test_clock_id","clock_reached_at") WHERE "status" <> 'ENDED' and "test_clock_id" is not null;--> statement-breakpoint
CREATE INDEX "feed_entry__unnumbered__idx" ON "feed_entry" ("merchant_id","stream_id","first_sequence") WHERE "position" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "feed_entry__position__uq" ON "feed_entry" ("merchant_id","position") WHERE "position" is not null;--> statement-breakpoint
CREATE INDEX "feed_entry__stream__idx" ON "feed_entry" ("merchant_id","stream_id","position") WHERE "position" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "outbox_event__sequence__uq" ON "outbox_event" ("merchant_id","stream_id","sequence");--> statement-breakpoint
CREATE INDEX "outbox_event__body__idx" ON "outbox_event" ("merchant_id","inserted_at") WHERE "body_deleted_at" is null;--> statement-breakpoint
CREATE INDEX "webhook_attempt__endpoint__idx" ON "webhook_attempt" ("merchant_id","config_id","at");--> statement-breakpoint
CREATE INDEX "webhook_config__active__idx" ON "webhook_config" ("merchant_id","is_active");--> statement-breakpoint
CREATE INDEX "webhook_delivery__pending_stream__idx" ON "webhook_delivery" ("merchant_id","stream_id","config_id","sequence") WHERE "state" = 'PENDING';--> statement-breakpoint
CREATE INDEX "webhook_delivery__pending_endpoint__idx" ON "webhook_delivery" ("merchant_id","config_id","is_resent","next_attempt_at") WHERE "state" = 'PENDING';--> statement-breakpoint
CREATE INDEX "webhook_delivery__delivered__idx" ON "webhook_delivery" ("merchant_id","config_id","settled_at") WHERE "state" = 'DELIVERED';--> statement-breakpoint
CREATE INDEX "webhook_delivery__missed__idx" ON "webhook_delivery" ("merchant_id","config_id") WHERE "state" in ('FAILED', 'DROPPED');--> statement-breakpoint
CREATE INDEX "webhook_delivery__recovery__idx" ON "webhook_delivery" ("merchant_id","recovery_id") WHERE "recovery_id" is not null;--> statement-breakpoint
ALTER TABLE "checkout_session" ADD CONSTRAINT "checkout_session__subscription_id__fk" FOREIGN KEY ("merchant_id","subscription_id") REFERENCES "subscription"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "checkout_session" ADD CONSTRAINT "checkout_session__intent_id__fk" FOREIGN KEY ("merchant_id","intent_id") REFERENCES "payment_intent"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "checkout_session" ADD CONSTRAINT "checkout_session__setup_method_id__fk" FOREIGN KEY ("merchant_id","setup_method_id") REFERENCES "setup_method"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "checkout_try" ADD CONSTRAINT "checkout_try__session_id__fk" FOREIGN KEY ("merchant_id","session_id") REFERENCES "checkout_session"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "setup_method" ADD CONSTRAINT "setup_method__customer_id__fk" FOREIGN KEY ("merchant_id","customer_id") REFERENCES "customer"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "setup_method" ADD CONSTRAINT "setup_method__payment_method_id__fk" FOREIGN KEY ("merchant_id","payment_method_id") REFERENCES "payment_method"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "consent" ADD CONSTRAINT "consent__customer_id__fk" FOREIGN KEY ("merchant_id","customer_id") REFERENCES "customer"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "customer" ADD CONSTRAINT "customer_merchant_id_merchant_id_fkey" FOREIGN KEY ("merchant_id") REFERENCES "merchant"("id");--> statement-breakpoint
ALTER TABLE "payment_method" ADD CONSTRAINT "payment_method__customer_id__fk" FOREIGN KEY ("merchant_id","customer_id") REFERENCES "customer"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "declaration" ADD CONSTRAINT "declaration_merchant_id_merchant_id_fkey" FOREIGN KEY ("merchant_id") REFERENCES "merchant"("id");--> statement-breakpoint
ALTER TABLE "credential" ADD CONSTRAINT "credential_merchant_id_merchant_id_fkey" FOREIGN KEY ("merchant_id") REFERENCES "merchant"("id");--> statement-breakpoint
ALTER TABLE "merchant_gateway" ADD CONSTRAINT "merchant_gateway_merchant_id_merchant_id_fkey" FOREIGN KEY ("merchant_id") REFERENCES "merchant"("id");--> statement-breakpoint
ALTER TABLE "dispute" ADD CONSTRAINT "dispute__intent_id__fk" FOREIGN KEY ("merchant_id","intent_id") REFERENCES "payment_intent"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "dispute" ADD CONSTRAINT "dispute__attempt_id__fk" FOREIGN KEY ("merchant_id","attempt_id") REFERENCES "payment_attempt"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "payment_attempt" ADD CONSTRAINT "payment_attempt__intent_id__fk" FOREIGN KEY ("merchant_id","intent_id") REFERENCES "payment_intent"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "payment_intent" ADD CONSTRAINT "payment_intent__subscription_id__fk" FOREIGN KEY ("merchant_id","subscription_id") REFERENCES "subscription"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "payment_intent" ADD CONSTRAINT "payment_intent__link_id__fk" FOREIGN KEY ("merchant_id","link_id") REFERENCES "subscription_link"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "refund" ADD CONSTRAINT "refund__intent_id__fk" FOREIGN KEY ("merchant_id","intent_id") REFERENCES "payment_intent"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "portal_session" ADD CONSTRAINT "portal_session__customer_id__fk" FOREIGN KEY ("merchant_id","customer_id") REFERENCES "customer"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "link_use" ADD CONSTRAINT "link_use__link_id__fk" FOREIGN KEY ("merchant_id","link_id") REFERENCES "subscription_link"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "subscription_command" ADD CONSTRAINT "subscription_command__subscription_id__fk" FOREIGN KEY ("merchant_id","subscription_id") REFERENCES "subscription"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "subscription_entry" ADD CONSTRAINT "subscription_entry__subscription_id__fk" FOREIGN KEY ("merchant_id","subscription_id") REFERENCES "subscription"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "subscription_import" ADD CONSTRAINT "subscription_import__subscription_id__fk" FOREIGN KEY ("merchant_id","subscription_id") REFERENCES "subscription"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "subscription_link" ADD CONSTRAINT "subscription_link_merchant_id_merchant_id_fkey" FOREIGN KEY ("merchant_id") REFERENCES "merchant"("id");--> statement-breakpoint
ALTER TABLE "subscription" ADD CONSTRAINT "subscription__customer_id__fk" FOREIGN KEY ("merchant_id","customer_id") REFERENCES "customer"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "subscription" ADD CONSTRAINT "subscription__test_clock_id__fk" FOREIGN KEY ("merchant_id","test_clock_id") REFERENCES "test_clock"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "subscription" ADD CONSTRAINT "subscription__link_id__fk" FOREIGN KEY ("merchant_id","link_id") REFERENCES "subscription_link"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "test_clock" ADD CONSTRAINT "test_clock_merchant_id_merchant_id_fkey" FOREIGN KEY ("merchant_id") REFERENCES "merchant"("id");--> statement-breakpoint
ALTER TABLE "webhook_config" ADD CONSTRAINT "webhook_config_merchant_id_merchant_id_fkey" FOREIGN KEY ("merchant_id") REFERENCES "merchant"("id");--> statement-breakpoint
ALTER TABLE "webhook_delivery" ADD CONSTRAINT "webhook_delivery__event_id__fk" FOREIGN KEY ("merchant_id","event_id") REFERENCES "outbox_event"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "webhook_delivery" ADD CONSTRAINT "webhook_delivery__config_id__fk" FOREIGN KEY ("merchant_id","config_id") REFERENCES "webhook_config"("merchant_id","id");--> statement-breakpoint
ALTER TABLE "webhook_recovery" ADD CONSTRAINT "webhook_recovery__config_id__fk" FOREIGN KEY ("merchant_id","config_id") REFERENCES "webhook_config"("merchant_id","id");--> statement-breakpoint
-- drizzle-kit cannot declare this. It leaves room for changed rows, which then need no new index entries.
ALTER TABLE "subscription" SET (fillfactor = 70);
