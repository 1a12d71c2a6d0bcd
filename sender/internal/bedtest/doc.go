// Package bedtest is what the tests of sender and of the packages beside it share: a
// sending service on the memory store, and the servers and proxies that it meets.
package bedtest
