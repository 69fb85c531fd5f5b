ALTER TABLE "delivery_lease" DISABLE ROW LEVEL SECURITY;--> statement-breakpoint
DROP TABLE "delivery_lease" CASCADE;--> statement-breakpoint
DROP INDEX "webhook_delivery__pending_due__idx";