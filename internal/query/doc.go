// Package query reads: what is asked of an engine and changes nothing. A read sees a
// consistent state of the store and does not wait for the committer, except where that
// alone knows the answer. Bulk changes what a search chooses. The engine imports nothing
// of it.
package query
