// Package scenario has the tests of both sides together, as a service and its consumers
// use them: a year of subscriptions in virtual time, catching up, challenges, secrets that
// nothing may print, and processes that are killed. There is nothing in the package
// itself.
package scenario
