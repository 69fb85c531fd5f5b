ALTER TABLE "subscription_link" ADD COLUMN "locale" text;--> statement-breakpoint
ALTER TABLE "subscription" ADD COLUMN "locale" text;--> statement-breakpoint
ALTER TABLE "payment_intent" ADD COLUMN "locale" text;--> statement-breakpoint
ALTER TABLE "setup_method" ADD COLUMN "locale" text;