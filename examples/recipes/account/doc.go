// Package account is the application of all recipes: accounts, and the payments into
// them. It is the same under each framework. Code that depends on a framework is in the
// recipe's own folder.
//
// The markers and the application's tables are in PostgreSQL, because functions keep
// no files: a marker that is forgotten with its process stops no duplicate.
package account
