ALTER TABLE "payment_method" ADD COLUMN "entered_at" timestamp(3) with time zone;--> statement-breakpoint
ALTER TABLE "checkout_session" ADD COLUMN "gateways" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
CREATE INDEX "subscription__customer__idx" ON "subscription" USING btree ("merchant_id","customer_id");