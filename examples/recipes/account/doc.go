// Package account is the application of all recipes: accounts, and what was paid into
// them. Everything that depends on a framework is in the recipe's own folder; what is
// here is the same under each.
//
// The markers and the application's tables are in PostgreSQL, because functions keep
// no files: a marker that is forgotten with its process stops no duplicate.
package account
