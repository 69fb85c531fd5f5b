CREATE TABLE "checkout_try" (
	"merchant_id" text NOT NULL,
	"session_id" text NOT NULL,
	"key" "bytea" NOT NULL,
	"error_code" text,
	"created_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "checkout_try_merchant_id_session_id_key_pk" PRIMARY KEY("merchant_id","session_id","key")
);
--> statement-breakpoint
ALTER TABLE "checkout_try" ADD CONSTRAINT "checkout_try_merchant_id_session_id_checkout_session_merchant_id_id_fk" FOREIGN KEY ("merchant_id","session_id") REFERENCES "public"."checkout_session"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "checkout_session" DROP COLUMN "completed_at";