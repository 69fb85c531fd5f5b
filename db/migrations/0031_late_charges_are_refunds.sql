DROP TABLE "late_charge" CASCADE;--> statement-breakpoint
ALTER TABLE "credential" DROP COLUMN "pepper_version";