ALTER TABLE "webhook_config" ADD COLUMN "consecutive_failures" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "webhook_config" ADD COLUMN "paused_until" timestamp(3) with time zone;--> statement-breakpoint
ALTER TABLE "webhook_delivery" ADD COLUMN "claimed_until" timestamp(3) with time zone;--> statement-breakpoint
CREATE INDEX "webhook_delivery__pending_endpoint__idx" ON "webhook_delivery" USING btree ("merchant_id","config_id","next_attempt_at") WHERE "webhook_delivery"."state" = 'PENDING';