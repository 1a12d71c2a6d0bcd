// Package schemes tests the schemes of package signing against the senders' own
// libraries. Their library verifies signatures of signing, and signing verifies
// signatures of their library or its documentation. If one of the two refuses a message
// the other does, too, except in the named cases.
//
// It is a module of its own so that importers of package signing do not depend on the
// senders' libraries. Run its tests in its folder.
package schemes
