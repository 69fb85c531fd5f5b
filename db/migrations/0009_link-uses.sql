CREATE TABLE "link_use" (
	"merchant_id" text NOT NULL,
	"link_id" text NOT NULL,
	"address_hash" "bytea" NOT NULL,
	"token_hash" "bytea" NOT NULL,
	"begun_at" timestamp(3) with time zone NOT NULL,
	CONSTRAINT "link_use_token_hash_pk" PRIMARY KEY("token_hash")
);
--> statement-breakpoint
ALTER TABLE "link_use" ADD CONSTRAINT "link_use_merchant_id_link_id_subscription_link_merchant_id_id_fk" FOREIGN KEY ("merchant_id","link_id") REFERENCES "public"."subscription_link"("merchant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "link_use__address__idx" ON "link_use" USING btree ("merchant_id","link_id","address_hash","begun_at");--> statement-breakpoint
CREATE INDEX "link_use__begun__idx" ON "link_use" USING btree ("begun_at");