(md5_number_lower("user") % 65536)::USMALLINT AS part
