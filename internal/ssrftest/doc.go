// Package ssrftest has an attacker's tools against the address guard (server-side
// request forgery): URLs that some parser takes for a forbidden address, names that
// resolve to one, and a name server that can give any answer. A test runs them where
// nothing is called, or in a network of its own, where every connection arrives.
package ssrftest
