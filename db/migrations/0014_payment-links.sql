ALTER TABLE "subscription_link" ALTER COLUMN "terms" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "subscription_link" ADD COLUMN "payment" json;--> statement-breakpoint
ALTER TABLE "payment_intent" ADD COLUMN "link_id" text;--> statement-breakpoint
ALTER TABLE "payment_intent" ADD CONSTRAINT "payment_intent_merchant_id_link_id_subscription_link_merchant_id_id_fk" FOREIGN KEY ("merchant_id","link_id") REFERENCES "public"."subscription_link"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "payment_intent__link__idx" ON "payment_intent" USING btree ("merchant_id","link_id","checkout_expires_at") WHERE "payment_intent"."link_id" is not null and "payment_intent"."status" in ('CREATED', 'FAILED');--> statement-breakpoint
ALTER TABLE "subscription_link" ADD CONSTRAINT "subscription_link__goods__ck" CHECK (num_nonnulls("subscription_link"."terms", "subscription_link"."payment") = 1);