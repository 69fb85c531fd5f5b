CREATE TABLE "sweep_count" (
	"kind" text PRIMARY KEY NOT NULL,
	"repaired" bigint NOT NULL,
	"last_at" timestamp(3) with time zone NOT NULL
);
