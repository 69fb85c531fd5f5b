CREATE INDEX "customer__email__idx" ON "customer" USING btree ("merchant_id",lower("details"->>'email'));--> statement-breakpoint
CREATE INDEX "subscription__receipt__idx" ON "subscription" USING btree ("merchant_id","receipt_id") WHERE "subscription"."receipt_id" is not null;--> statement-breakpoint
CREATE INDEX "subscription__email__idx" ON "subscription" USING btree ("merchant_id",lower("customer_details"->>'email'));--> statement-breakpoint
CREATE INDEX "payment_intent__subscription__idx" ON "payment_intent" USING btree ("merchant_id","subscription_id","created_at","id") WHERE "payment_intent"."subscription_id" is not null;--> statement-breakpoint
CREATE INDEX "payment_intent__receipt__idx" ON "payment_intent" USING btree ("merchant_id","receipt_id") WHERE "payment_intent"."receipt_id" is not null;--> statement-breakpoint
CREATE INDEX "payment_intent__email__idx" ON "payment_intent" USING btree ("merchant_id",lower("customer_details"->>'email'));