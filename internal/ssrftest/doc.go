// Package ssrftest has what an attacker of the address guard has (server-side
// request forgery): URLs that one parser or another takes for a forbidden address,
// and a name server that answers as it likes.
package ssrftest
