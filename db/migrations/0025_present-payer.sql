ALTER TABLE "payment_attempt" ADD COLUMN "session_id" text;--> statement-breakpoint
ALTER TABLE "payment_attempt" ADD COLUMN "payer_asked_at" timestamp(3) with time zone;--> statement-breakpoint
ALTER TABLE "payment_attempt" ADD COLUMN "payer_left_at" timestamp(3) with time zone;