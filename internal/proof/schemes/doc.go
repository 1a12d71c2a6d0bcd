// Package schemes tests the schemes of package signing against the senders' own
// libraries. Their library verifies signatures of signing, and signing verifies
// signatures of their library or its documentation. If one of the two refuses a message
// the other does, too, except in the named cases.
//
// Libraries from npm are asked by npm/compare.mjs. npm installs those of package-lock.json
// once and runs no script of theirs. Without Node and npm their tests are skipped aloud, or
// fail if SUREHOOK_REQUIRE, a list with commas, names node. After a change of package.json,
// run npm install --package-lock-only --ignore-scripts in that folder.
//
// It is a module of its own so that importers of package signing do not depend on the
// senders' libraries. Run its tests in its folder.
package schemes
