CREATE TABLE "merchant_gateway" (
	"merchant_id" text NOT NULL,
	"name" text NOT NULL,
	"mode" text NOT NULL,
	"sealed_key" "bytea" NOT NULL,
	"key_ending" text NOT NULL,
	"sealed_webhook_secret" "bytea",
	"sealed_previous_webhook_secret" "bytea",
	"previous_webhook_secret_until" timestamp(3) with time zone,
	"is_current" boolean NOT NULL,
	"created_at" timestamp(3) with time zone NOT NULL,
	"updated_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "merchant_gateway_merchant_id_name_pk" PRIMARY KEY("merchant_id","name"),
	CONSTRAINT "merchant_gateway__mode__ck" CHECK ("merchant_gateway"."mode" in ('test', 'live'))
);
--> statement-breakpoint
ALTER TABLE "merchant_gateway" ADD CONSTRAINT "merchant_gateway_merchant_id_merchant_id_fk" FOREIGN KEY ("merchant_id") REFERENCES "public"."merchant"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "merchant_gateway__account__uq" ON "merchant_gateway" USING btree ("name","mode");--> statement-breakpoint
CREATE UNIQUE INDEX "merchant_gateway__current__uq" ON "merchant_gateway" USING btree ("merchant_id") WHERE "merchant_gateway"."is_current";