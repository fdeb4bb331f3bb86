"""One file a peer: the class Adapter, served in the environment of that peer."""
