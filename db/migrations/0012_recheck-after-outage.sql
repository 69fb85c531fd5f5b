CREATE TABLE "gateway_health" (
	"gateway" text PRIMARY KEY NOT NULL,
	"answered_at" timestamp(3) with time zone,
	"silent_since_at" timestamp(3) with time zone
);
--> statement-breakpoint
ALTER TABLE "payment_attempt" ADD COLUMN "unanswered_at" timestamp(3) with time zone;--> statement-breakpoint
ALTER TABLE "payment_attempt" ADD COLUMN "rechecks" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "payment_attempt" ADD COLUMN "no_recheck_before_at" timestamp(3) with time zone;--> statement-breakpoint
ALTER TABLE "refund" ADD COLUMN "unanswered_at" timestamp(3) with time zone;--> statement-breakpoint
ALTER TABLE "refund" ADD COLUMN "rechecks" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "refund" ADD COLUMN "no_recheck_before_at" timestamp(3) with time zone;