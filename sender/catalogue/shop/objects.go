package shop

var (
	created  = field{"created_at", moment, "When it was made", "2026-01-02T15:04:05Z"}
	updated  = field{"updated_at", added, "When it was changed last", "2026-01-03T08:00:00Z"}
	customer = field{"customer", reference, "Whose it is", "cus_1"}
)

var objects = []object{
	{
		name: "customer", group: "Customers", id: "cus_1",
		fields: []field{{"name", word, "The name", "Zoë Østergård"}, {"email", word, "The address for mail", "zoe@example.com"}, {"country", word, "ISO 3166-1 alpha-2", "DK"}, {"balance", money, "What it has in credit", "0"}, created, updated},
		events: []event{
			{name: "created", description: "A customer has signed up."},
			{name: "updated", description: "Its name, address or country was changed."},
			{name: "balance_changed", description: "Credit was added or used."},
			{name: "verified", description: "The address for mail was confirmed."},
			{name: "deleted", description: "It was deleted. Its invoices stay."},
		},
	},
	{
		name: "product", group: "Products", id: "prod_1",
		fields: []field{{"name", word, "The name in the shop", "Green tea"}, {"sku", word, "The article number", "tea-green"}, {"price", money, "The price of one, with tax", "1190"}, {"stock", count, "How many there are", "42"}, created, updated},
		events: []event{
			{name: "created", description: "A product was added. It is not shown yet."},
			{name: "published", description: "It can be bought."},
			{name: "updated", description: "Its name, number or price was changed."},
			{name: "stock_low", description: "There are fewer than the limit that you have set."},
			{name: "archived", description: "It cannot be bought any more."},
		},
	},
	{
		name: "cart", group: "Orders", id: "cart_1",
		fields: []field{customer, {"items", count, "How many products are in it", "3"}, {"subtotal", money, "Before shipping", "2380"}, created, updated},
		events: []event{
			{name: "created", description: "A customer has put a first product into a cart."},
			{name: "updated", description: "Products were added or removed."},
			{name: "abandoned", description: "Nothing has happened to it for a day."},
			{name: "recovered", description: "The customer came back to one that was abandoned."},
			{name: "converted", description: "It became an order.", deprecated: "Use order.created, which has the cart's id."},
		},
	},
	{
		name: "order", group: "Orders", id: "ord_1",
		fields: []field{{"number", word, "The number that the customer sees", "2026-1001"}, customer, {"cart", reference, "The cart that it was", "cart_1"}, {"status", word, "open, paid, packed, shipped, done or cancelled", "paid"}, {"total", money, "With tax and shipping", "2870"}, created, updated},
		events: []event{
			{name: "created", description: "A customer has ordered."},
			{name: "paid", description: "It was paid in full. Send it now."},
			{name: "updated", description: "Its lines, address or status was changed."},
			{name: "completed", description: "All of it has arrived."},
			{name: "cancelled", description: "The customer or you have cancelled it.", fact: "out_of_stock"},
		},
	},
	{
		name: "shipment", group: "Shipments", id: "shp_1",
		fields: []field{{"order", reference, "What is in it", "ord_1"}, {"carrier", word, "Who brings it", "post"}, {"tracking", word, "The carrier's number", "RR123456789DE"}, {"parcels", count, "How many parcels", "1"}, {"cost", money, "What the carrier takes", "490"}, created, updated},
		events: []event{
			{name: "created", description: "A label was made."},
			{name: "sent", description: "The carrier has taken it."},
			{name: "delayed", description: "The carrier has named a later day.", fact: "weather"},
			{name: "delivered", description: "It has arrived."},
			{name: "returned", description: "It came back.", fact: "refused"},
		},
	},
	{
		name: "invoice", group: "Invoices", id: "in_1",
		fields: []field{{"number", word, "The number on it", "INV-2026-0042"}, customer, {"order", reference, "What it is for", "ord_1"}, {"status", word, "draft, open, paid, void or uncollectible", "paid"}, {"total", money, "With tax", "4200"}, {"tax", money, "The tax in it", "671"}, {"due_at", moment, "When it is due", "2026-02-01T00:00:00Z"}, created, updated},
		events: []event{
			{name: "created", description: "A draft was made."},
			{name: "finalized", description: "It has its number and can be paid."},
			{name: "paid", description: "It was paid in full."},
			{name: "payment_failed", description: "An attempt to collect it has failed.", fact: "card_declined"},
			{name: "voided", description: "It was withdrawn, and is not to be paid.", fact: "wrong_address"},
		},
	},
	{
		name: "payment", group: "Payments", id: "pay_1",
		fields: []field{customer, {"invoice", reference, "What it pays", "in_1"}, {"method", word, "card, transfer or wallet", "card"}, {"amount", money, "How much", "4200"}, {"fee", money, "What is kept of it", "84"}, created, updated},
		events: []event{
			{name: "created", description: "A customer has begun to pay."},
			{name: "authorized", description: "The bank holds the money for you."},
			{name: "succeeded", description: "The money is yours."},
			{name: "failed", description: "The bank has refused.", fact: "insufficient_funds"},
			{name: "captured", description: "What was held was taken.", deprecated: "Use payment.succeeded, which comes at the same time."},
		},
	},
	{
		name: "refund", group: "Payments", id: "ref_1",
		fields: []field{{"payment", reference, "What it gives back", "pay_1"}, {"amount", money, "How much", "4200"}, {"status", word, "pending, succeeded or failed", "succeeded"}, created, updated},
		events: []event{
			{name: "created", description: "A refund was asked for."},
			{name: "updated", description: "Its status or its reference at the bank was changed."},
			{name: "succeeded", description: "The customer has the money."},
			{name: "failed", description: "The bank could not give it back.", fact: "account_closed"},
			{name: "cancelled", description: "It was withdrawn before it was made.", fact: "by_operator"},
		},
	},
	{
		name: "dispute", group: "Disputes", id: "dis_1",
		fields: []field{{"payment", reference, "What the customer contests", "pay_1"}, {"amount", money, "How much of it", "4200"}, {"status", word, "open, under_review, won or lost", "open"}, {"evidence_due_at", moment, "Until when you may answer", "2026-01-20T00:00:00Z"}, created, updated},
		events: []event{
			{name: "opened", description: "A customer contests a payment at the bank.", fact: "not_received"},
			{name: "evidence_submitted", description: "Your answer was handed to the bank."},
			{name: "updated", description: "Its status or its time was changed."},
			{name: "won", description: "The bank has decided for you."},
			{name: "lost", description: "The bank has decided for the customer.", fact: "no_evidence"},
		},
	},
	{
		name: "plan", group: "Plans", id: "plan_1",
		fields: []field{customer, {"name", word, "The name of what is paid for", "Tea of the month"}, {"seats", count, "For how many", "2"}, {"price", money, "By month", "1900"}, {"renews_at", moment, "When it goes on", "2026-02-02T15:04:05Z"}, created, updated},
		events: []event{
			{name: "started", description: "A customer pays by the month from now on."},
			{name: "updated", description: "Its seats or its price was changed."},
			{name: "renewed", description: "Another month was paid."},
			{name: "paused", description: "It rests, and is not paid for."},
			{name: "ended", description: "It is over.", fact: "by_customer"},
		},
	},
}
