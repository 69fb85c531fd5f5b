ALTER TABLE "payment_intent" ADD COLUMN "adopted_at" timestamp(3) with time zone;--> statement-breakpoint
ALTER TABLE "refund" ADD COLUMN "adopted_at" timestamp(3) with time zone;