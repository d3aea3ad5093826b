package main

func serveGoSDK() error { return nil }
