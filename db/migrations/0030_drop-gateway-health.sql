DROP TABLE "gateway_health" CASCADE;--> statement-breakpoint
ALTER TABLE "payment_attempt" DROP COLUMN "rechecks";--> statement-breakpoint
ALTER TABLE "payment_attempt" DROP COLUMN "no_recheck_before_at";--> statement-breakpoint
ALTER TABLE "refund" DROP COLUMN "unanswered_at";--> statement-breakpoint
ALTER TABLE "refund" DROP COLUMN "rechecks";--> statement-breakpoint
ALTER TABLE "refund" DROP COLUMN "no_recheck_before_at";