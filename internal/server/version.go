package server

// Version is what this build calls itself; the linker sets it in a release.
var Version = "0.1.0-dev"
