DROP INDEX "checkout_session__intent__idx";--> statement-breakpoint
CREATE INDEX "checkout_session__intent__idx" ON "checkout_session" USING btree ("intent_id","merchant_id");