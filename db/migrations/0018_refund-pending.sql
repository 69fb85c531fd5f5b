ALTER TABLE "refund" DROP CONSTRAINT "refund__state__ck";--> statement-breakpoint
DROP INDEX "refund__open__idx";--> statement-breakpoint
CREATE INDEX "refund__open__idx" ON "refund" USING btree ("updated_at") WHERE "refund"."state" in ('CREATED', 'SENDING', 'UNKNOWN', 'PENDING', 'REVIEW');--> statement-breakpoint
ALTER TABLE "refund" ADD CONSTRAINT "refund__state__ck" CHECK ("refund"."state" in ('CREATED', 'SENDING', 'UNKNOWN', 'PENDING', 'REVIEW', 'SUCCEEDED', 'REFUSED'));