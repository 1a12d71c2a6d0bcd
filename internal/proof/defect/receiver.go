package defect

var ofReceiver = []Defect{
	{
		Name: "the answer is 2xx although the commit failed",
		File: "receiver/transaction.go", Tests: []string{"./receiver"},
		Old: "\tcase is.called:\n", New: "\tcase is.called:\n\t\treturn nil\n\tcase err != nil && is.called:\n",
	},
	{
		Name: "what a handler did before it panicked is committed",
		File: "receiver/transaction.go", Tests: []string{"./receiver"},
		Old: "is.failed = fail(ReasonPanic, err)\n\t\t\t}", New: "is.failed = nil\n\t\t\t}",
	},
	{
		Name: "duplicates are applied",
		File: "receiver/apply.go", Tests: []string{"./receiver"},
		Old: "case !fresh && !again:", New: "case !fresh && !again && version < 0:",
	},
	{
		Name: "stale events are applied",
		File: "receiver/apply.go", Tests: []string{"./receiver"},
		Old: "if !newer {", New: "if !newer && ev.ID == \"\" {",
	},
	{
		Name: "a fact that was overtaken is skipped",
		File: "receiver/apply.go", Tests: []string{"./receiver"}, Run: "Fact",
		Old: "if kind == factTask || !versioned(ev, version) {", New: "if !versioned(ev, version) {",
	},
	{
		Name: "a fact is applied although its marker may have been removed",
		File: "receiver/apply.go", Tests: []string{"./receiver"}, Run: "Fact",
		Old: "if cause = r.tooOld(ev, at); cause != nil {", New: "if cause = r.tooOld(ev, at); cause != nil && r.deadLetters == nil {",
	},
	{
		Name: "a stale event is skipped in silence",
		File: "receiver/report.go", Tests: []string{"./receiver"}, Run: "Silent",
		Old: "if res == Stale || res == Reapplied || unknown {", New: "if res == Reapplied || unknown {",
	},
	{
		Name: "a type that no route matches is ignored in silence",
		File: "receiver/report.go", Tests: []string{"./receiver"}, Run: "TestUnknownTypes",
		Old: "if res == Stale || res == Reapplied || unknown {", New: "if res == Stale || res == Reapplied {",
	},
	{
		Name: "the scope is left out of the marker",
		File: "receiver/apply.go", Tests: []string{"./receiver"},
		Old: "r.store, tx, ev.Scope, ev.ID", New: "r.store, tx, \"default\", ev.ID",
	},
	{
		Name: "the version is stored although the event is set aside",
		File: "receiver/apply.go", Tests: []string{"./receiver"},
		Old: "cause = failure.Err\n", New: "cause = failure.Err\n\t_ = r.transact(ctx, func(tx Tx) *Error { _, _ = r.store.Advance(ctx, tx, ev.Scope, ev.Object, ev.Version); return nil })\n",
	},
	{
		Name: "the signed id may differ from the body's",
		File: "receiver/verify.go", Tests: []string{"./receiver"},
		Old: "verified.ID != ev.ID {", New: "verified.ID != ev.ID && ev.ID == \"\" {",
	},
	{
		Name: "secrets that cannot be looked up answer like a wrong signature",
		File: "receiver/verify.go", Tests: []string{"./receiver"},
		Old: "return ReasonSecrets", New: "return ReasonSignature",
	},
	{
		Name: "a body of any size is read",
		File: "receiver/body.go", Tests: []string{"./receiver"},
		Old: "http.MaxBytesReader(from.w, req.Body, limit)", New: "http.MaxBytesReader(from.w, req.Body, limit<<20)",
	},
	{
		Name: "the signature's verdict is not heeded",
		File: "receiver/verify.go", Tests: []string{"./receiver"},
		Old: "r.checkSignature(ctx, in, body)\n\tif err != nil {", New: "r.checkSignature(ctx, in, body)\n\tif err != nil && len(body) == 0 {",
	},
}

var ofDedup = []Defect{
	{
		Name: "an equal version is newer, on SQLite",
		File: "dedup/sqlite/store.go", Tests: []string{"./dedup/sqlite"},
		Old: "WHERE excluded.version > v.version", New: "WHERE excluded.version >= v.version",
	},
	{
		Name: "an older version is newer, on PostgreSQL",
		File: "dedup/postgres/statements.go", Tests: []string{"./dedup/postgres"},
		Old: "WHERE excluded.version > v.version\nRETURNING ` + pgtx.Durable\n", New: "WHERE excluded.version <> v.version\nRETURNING ` + pgtx.Durable\n",
	},
	{
		Name: "an equal version is newer, on MySQL",
		File: "dedup/mysql/store.go", Module: "internal/proof/mysql", Tests: []string{"."}, Run: "^TestMySQL$/^store$/^read_committed$",
		Old: "LAST_INSERT_ID(version >= ?)", New: "LAST_INSERT_ID(version > ?)",
	},
	{
		Name: "a transaction that has ended before its commit passes for committed, on MySQL",
		File: "dedup/mysql/intx.go", Module: "internal/proof/mysql", Tests: []string{"."}, Run: "^TestMySQL$/^ended_transactions$",
		Old: "_, err = tx.ExecContext(ctx, releaseSavepoint)", New: "err = nil",
	},
	{
		Name: "the marker stays after a rollback",
		File: "dedup/memory/tx.go", Tests: []string{"./dedup/memory"},
		Old: "if commit {\n\t\tmerge(s.markers, tx.markers)", New: "merge(s.markers, tx.markers)\n\tif commit {",
	},
	{
		Name: "a marker is not durable where the server does not wait for its disk, on PostgreSQL",
		File: "dedup/postgres/statements.go", Tests: []string{"./dedup/postgres"},
		Old: "DO NOTHING\nRETURNING ` + pgtx.Durable\n", New: "DO NOTHING`\n",
	},
	{
		Name: "markers are pruned before their time",
		File: "dedup/sqlite/store.go", Tests: []string{"./dedup/sqlite"},
		Old: "WHERE marked_at < ? ORDER BY", New: "WHERE marked_at <= ? ORDER BY",
	},
	{
		Name: "what is sent again at the end of the reach outlasts its marker",
		File: "dedup/retention.go", Tests: []string{"./dedup"}, Run: "^TestCheckRetention$",
		Old: "case retention < reach+horizon+RetentionMargin:", New: "case retention < reach+RetentionMargin:",
	},
	{
		Name: "what is committed into a file that was removed counts as kept, on SQLite",
		File: "internal/sqlitetx/file.go", Tests: []string{"./dedup/sqlite"}, Run: "^TestStore$/^immediate$/^lost$",
		Old: "case errors.Is(err, fs.ErrNotExist):", New: "case errors.Is(err, fs.ErrExist):",
	},
	{
		Name: "a duplicate is acknowledged although its file was removed, on SQLite",
		File: "dedup/sqlite/store.go", Tests: []string{"./dedup/sqlite"}, Run: "^TestStore$/^immediate$/^lost$",
		Old: "return n, s.files.Kept(ctx, tx, err)", New: "if n == 0 {\n\t\treturn n, err\n\t}\n\treturn n, s.files.Kept(ctx, tx, err)",
	},
}
