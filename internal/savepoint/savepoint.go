// Package savepoint has the statements by which a receiver's functions share a
// transaction. Code that runs transactions can recognise them.
package savepoint

// The statements, in their order. Back may come at any time after Set, and leaves the
// savepoint set.
const (
	Set     = "SAVEPOINT surehook"
	Release = "RELEASE SAVEPOINT surehook"
	// Next ends one function's savepoint and sets the next one's.
	Next = Release + "; " + Set
	Back = "ROLLBACK TO SAVEPOINT surehook"
)
