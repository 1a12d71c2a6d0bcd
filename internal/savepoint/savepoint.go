// Package savepoint has the statements by which a receiver's functions share a
// transaction. Whoever runs transactions can tell by them what is meant.
package savepoint

// What is done with the savepoint: in this order, but that Back may come at any time
// after Set and leaves it set.
const (
	Set     = "SAVEPOINT surehook"
	Release = "RELEASE SAVEPOINT surehook"
	// Next ends one function's savepoint and sets the next one's.
	Next = Release + "; " + Set
	Back = "ROLLBACK TO SAVEPOINT surehook"
)
