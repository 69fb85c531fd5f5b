DROP INDEX "customer__email__idx";--> statement-breakpoint
DROP INDEX "subscription__email__idx";--> statement-breakpoint
DROP INDEX "payment_intent__email__idx";--> statement-breakpoint
ALTER TABLE "customer" ADD COLUMN "normal_email" text;--> statement-breakpoint
ALTER TABLE "subscription" ADD COLUMN "normal_email" text;--> statement-breakpoint
ALTER TABLE "payment_intent" ADD COLUMN "normal_email" text;--> statement-breakpoint
CREATE INDEX "customer__normal_email__idx" ON "customer" USING btree ("merchant_id","normal_email") WHERE "customer"."normal_email" is not null;--> statement-breakpoint
CREATE INDEX "subscription__normal_email__idx" ON "subscription" USING btree ("merchant_id","normal_email") WHERE "subscription"."normal_email" is not null;--> statement-breakpoint
CREATE INDEX "payment_intent__normal_email__idx" ON "payment_intent" USING btree ("merchant_id","normal_email") WHERE "payment_intent"."normal_email" is not null;--> statement-breakpoint
ALTER TABLE "customer" ADD CONSTRAINT "customer__normal_email__ck" CHECK (("customer"."details"->>'email' is null) = ("customer"."normal_email" is null));--> statement-breakpoint
ALTER TABLE "subscription" ADD CONSTRAINT "subscription__normal_email__ck" CHECK (("subscription"."customer_details"->>'email' is null) = ("subscription"."normal_email" is null));--> statement-breakpoint
ALTER TABLE "payment_intent" ADD CONSTRAINT "payment_intent__normal_email__ck" CHECK (("payment_intent"."customer_details"->>'email' is null) = ("payment_intent"."normal_email" is null));