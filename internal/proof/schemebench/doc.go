// Package schemebench measures verifying beside the libraries that senders offer, in
// one run:
//
//	go test -run '^$' -bench . -count 6
//
// Each library is used as its documentation shows. Everything that can be made once is
// made outside the loop. This is a module of its own so that importers of package
// signing do not depend on the senders' libraries.
package schemebench
