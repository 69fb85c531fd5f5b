CREATE TABLE "subscription_import" (
	"merchant_id" text NOT NULL,
	"import_id" text NOT NULL,
	"subscription_id" text NOT NULL,
	"gateway" text NOT NULL,
	"gateway_customer_id" text,
	"terms" jsonb NOT NULL,
	"status" text NOT NULL,
	"cycles_charged" integer NOT NULL,
	"next_index" integer NOT NULL,
	"imported_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "subscription_import_merchant_id_import_id_pk" PRIMARY KEY("merchant_id","import_id"),
	CONSTRAINT "subscription_import__status__ck" CHECK ("subscription_import"."status" in ('ACTIVE', 'TRIALING'))
);
--> statement-breakpoint
ALTER TABLE "subscription_import" ADD CONSTRAINT "subscription_import_merchant_id_subscription_id_subscription_merchant_id_id_fk" FOREIGN KEY ("merchant_id","subscription_id") REFERENCES "public"."subscription"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "subscription_import__subscription__uq" ON "subscription_import" USING btree ("merchant_id","subscription_id");--> statement-breakpoint
CREATE INDEX "subscription_import__payer__idx" ON "subscription_import" USING btree ("merchant_id","gateway","gateway_customer_id");