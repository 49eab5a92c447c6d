//! The gate as a layer around any tower service that speaks HTTP.
