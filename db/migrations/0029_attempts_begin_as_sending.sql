ALTER TABLE "payment_attempt" DROP CONSTRAINT "payment_attempt__state__ck";--> statement-breakpoint
DROP INDEX "payment_attempt__one_open__uq";--> statement-breakpoint
DROP INDEX "payment_attempt__open__idx";--> statement-breakpoint
ALTER TABLE "payment_attempt" ALTER COLUMN "first_sent_at" SET DEFAULT now();--> statement-breakpoint
ALTER TABLE "payment_attempt" ALTER COLUMN "first_sent_at" SET NOT NULL;--> statement-breakpoint
ALTER TABLE "payment_attempt" ALTER COLUMN "last_sent_at" SET DEFAULT now();--> statement-breakpoint
ALTER TABLE "payment_attempt" ALTER COLUMN "last_sent_at" SET NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX "payment_attempt__one_open__uq" ON "payment_attempt" USING btree ("merchant_id","intent_id") WHERE "payment_attempt"."state" in ('SENDING', 'UNKNOWN', 'REVIEW');--> statement-breakpoint
CREATE INDEX "payment_attempt__open__idx" ON "payment_attempt" USING btree ("last_sent_at") WHERE "payment_attempt"."state" in ('SENDING', 'UNKNOWN');--> statement-breakpoint
ALTER TABLE "payment_attempt" ADD CONSTRAINT "payment_attempt__state__ck" CHECK ("payment_attempt"."state" in ('SENDING', 'SUCCEEDED', 'DECLINED', 'UNKNOWN', 'REVIEW'));