package defect

// ofTransactions are defects in callers' transactions.
var ofTransactions = []Defect{
	{
		Name: "an event is stored beside a transaction that a statement has ended",
		File: "internal/pgtx/ended.go", Tests: []string{"./sender/postgres"}, Run: "^TestEndedTransaction$",
		Old: "conn.TxStatus() == 'I'", New: "conn.TxStatus() == 0",
	},
	{
		Name: "an event is stored beside a *sql.Tx that a statement has ended",
		File: "internal/pgtx/ended.go", Tests: []string{"./sender/postgres"}, Run: "^TestEndedTransaction$",
		Old: "args[0] = watch{args[0]}", New: "args[0] = watch{args[0]}.value",
	},
}
