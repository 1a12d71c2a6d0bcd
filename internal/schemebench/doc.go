// Package schemebench measures verifying beside the libraries that senders offer, in
// one run:
//
//	go test -run '^$' -bench . -count 6
//
// Each library is used as its documentation shows, with all that can be made once made
// outside the loop. It is a module of its own so that no library of a sender becomes a
// dependency of who imports package signing.
package schemebench
