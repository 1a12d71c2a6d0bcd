// Package ssrftest has an attacker's tools against the address guard (server-side
// request forgery): URLs that some parser takes for a forbidden address, and a name
// server that can give any answer.
package ssrftest
