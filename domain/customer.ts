/** A payer's details. Every field is optional, and is returned exactly as given. */
export interface CustomerDetails {
  name?: string | null | undefined;
  email?: string | null | undefined;
  contactNumber?: string | null | undefined;
  customerAddress?: CustomerAddress | null | undefined;
}

export interface CustomerAddress {
  addressLine1?: string | null | undefined;
  addressLine2?: string | null | undefined;
  city?: string | null | undefined;
  state?: string | null | undefined;
  country?: string | null | undefined;
  postalCode?: string | null | undefined;
}
