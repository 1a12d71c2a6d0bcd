// Package memory keeps markers, versions and dead letters in the process, with
// transactions that behave like a database's under READ COMMITTED: what one
// wrote is unseen by others until it commits; who wants the same marker or
// object waits for it; a circle of waits ends with [dedup.ErrRetryTx] for the
// one that would close it.
//
// It is for tests, and for programs whose effects live in the same process. What
// it keeps is gone when the process ends, so an effect outside is not protected
// by it.
package memory
