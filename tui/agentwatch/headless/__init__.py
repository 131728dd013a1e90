"""The faces without a screen: each prints what there is, as text for people or as the documented JSON."""
