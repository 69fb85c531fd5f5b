CREATE TABLE "retention_count" (
	"kind" text PRIMARY KEY NOT NULL,
	"deleted" bigint NOT NULL,
	"last_at" timestamp(3) with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "checkout_session" ADD COLUMN "inserted_at" timestamp(3) with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "outbox_event" ADD COLUMN "body_deleted_at" timestamp(3) with time zone;--> statement-breakpoint
CREATE INDEX "checkout_session__inserted__idx" ON "checkout_session" USING btree ("inserted_at");--> statement-breakpoint
CREATE INDEX "outbox_event__body__idx" ON "outbox_event" USING btree ("inserted_at") WHERE "outbox_event"."body_deleted_at" is null;