// Package linear has nothing but tests: several processes work on one database, and
// what each saw, with the times of its calls, must be what one process could have seen
// that did everything in some order. Porcupine looks for that order.
package linear
