// Package memory keeps markers, versions, dead letters and requests to apply again in the
// process, with transactions that behave like a database's under READ COMMITTED. Others do
// not see a transaction's writes until it commits. A transaction that wants the same
// marker or object waits for it. The transaction that would close a circle of waits gets
// [dedup.ErrRetryTx].
//
// It is for tests, and for programs whose effects live in the same process. Its data are
// gone when the process ends, so it protects no effect outside.
package memory
