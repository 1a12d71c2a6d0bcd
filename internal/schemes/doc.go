// Package schemes holds the schemes of package signing to what the senders themselves
// offer: what signing signs, their library verifies, and what their library or its
// documentation signs, signing verifies; and what one of the two refuses, the other
// does, but for the cases that are named.
//
// It is a module of its own so that no library of a sender becomes a dependency of who
// imports package signing. Run its tests in its folder.
package schemes
