// Package scenario tests both sides together, as a service and its consumers use them:
// a year of subscriptions in virtual time, catching up, challenges, secrets that
// nothing may print, and processes that are killed. It has only tests.
package scenario
