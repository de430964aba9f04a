#separator \x09
#set_separator	,
#empty_field	(empty)
#unset_field	-
#path	conn
#open	2026-11-30-00-55-47
#fields	ts	uid	id.orig_h	id.orig_p	id.resp_h	id.resp_p	proto	service	duration	orig_bytes	resp_bytes	conn_state	local_orig	local_resp	missed_bytes	history	orig_pkts	orig_ip_bytes	resp_pkts	resp_ip_bytes	tunnel_parents	ip_proto	community_id	resp_cc	postern.name	postern.sandbox	postern.verdict	postern.reason	postern.rule	postern.detail	postern.end	postern.resp_asn
#types	time	string	addr	port	addr	port	enum	string	interval	count	count	string	bool	bool	count	string	count	count	count	count	set[string]	count	string	string	string	string	string	string	string	string	string	count
1796000135.363875	C3586650300000004	172.16.0.2	34620	45.45.45.10	443	tcp	ssl	0.004363	777	1678	SF	T	F	0	-	11	-	8	-	-	6	1:hjhYcc9owIfqxf0SQTWTsiwsSho=	-	news.lab-site.org	box1	allowed	allowed	allow news.lab-site.org (demo.yaml:4)	-	fin	-
1796000135.384152	C3586650300000007	fd70:6f73:7465:726e::2	52536	2600:1:2::10	443	tcp	ssl	0.003436	777	1680	SF	T	F	0	-	10	-	7	-	-	6	1:OGx7Sm8GE37bKAS31MFR9gQqNe0=	-	news.lab-site.org	box1	allowed	allowed	allow news.lab-site.org (demo.yaml:4)	-	fin	-
1796000135.413352	C358665030000000a	172.16.0.2	46882	45.45.45.10	80	tcp	http	0.001457	81	185	SF	T	F	0	-	6	-	3	-	-	6	1:+ib4rIIwzodJhZJ5VhLdUSVbgVk=	-	news.lab-site.org	box1	allowed	allowed	allow news.lab-site.org (demo.yaml:4)	-	fin	-
1796000135.452005	C358665030000000d	172.16.0.2	48858	45.45.45.11	443	tcp	ssl	0.003472	781	1703	SF	T	F	0	-	10	-	8	-	-	6	1:2vfSlr5IvaRCcHVBBWBwjJfO3KU=	-	api.lab-a.com	box1	allowed	allowed	allow *.lab-a.com (demo.yaml:5)	-	fin	-
1796000135.516991	C3586650300000010	172.16.0.2	54036	10.0.0.5	80	tcp	-	-	-	-	REJ	T	F	0	-	1	-	-	-	-	6	1:RVDMWnXGVd42COVnDIUXMmQw2m8=	-	-	box1	denied	never_address	-	private use	refused	-
1796000135.517005	C3586650300000011	172.16.0.2	56506	169.254.169.254	80	tcp	-	-	-	-	REJ	T	F	0	-	1	-	-	-	-	6	1:FQjEOIJrv/TZVQ7e1sg1DqT036o=	-	-	box1	denied	never_address	-	IMDS of AWS GCP Azure OCI DigitalOcean Hetzner OpenStack Vultr IBM Huawei Exoscale	refused	-
1796000135.548479	C3586650300000016	172.16.0.2	34624	45.45.45.10	443	tcp	ssl	-	-	-	REJ	T	F	0	-	-	-	-	-	-	6	1:RO0v9BEyOb9WNXMfMAlp89cQrtk=	-	www.lab-b.net	box1	denied	no_rule	-	-	refused	-
1796000135.560658	C3586650300000017	172.16.0.2	41542	45.45.45.20	443	tcp	-	-	-	-	REJ	T	F	0	-	1	-	-	-	-	6	1:+Y2BzxlNgTotTmQ+b/tk90fTjvg=	-	-	box1	denied	not_leased	-	-	refused	-
1796000135.584942	C358665030000001a	172.16.0.2	46886	45.45.45.10	80	tcp	http	-	-	-	REJ	T	F	0	-	-	-	-	-	-	6	1:GZolNk2sbIEeef7uqYk9A7HPBQ4=	-	www.lab-b.net	box1	denied	no_rule	-	-	refused	-
1796000135.623323	C358665030000001f	172.16.0.2	57804	1.1.1.1	853	tcp	-	-	-	-	REJ	T	F	0	-	1	-	-	-	-	6	1:QGG3lNMUpku9Dc0OBsg65NHW3Pk=	-	-	box1	denied	not_leased	-	-	refused	-
1796000135.623447	C3586650300000020	172.16.0.2	58696	45.45.45.11	8443	tcp	-	-	-	-	REJ	T	F	0	-	1	-	-	-	-	6	1:ghkcHXlW2ctLbXRq66UXic3Pt1I=	-	-	box1	denied	not_leased	-	-	refused	-
1796000135.623477	C3586650300000021	fd70:6f73:7465:726e::2	48606	2600:1:2::11	8443	tcp	-	-	-	-	REJ	T	F	0	-	1	-	-	-	-	6	1:ae2HjKZmdnWFMzz+uRyNVXDFFnM=	-	-	box1	denied	not_leased	-	-	refused	-
1796000135.687852	C3586650300000024	172.16.0.2	34638	45.45.45.10	443	tcp	ssl	0.027682	777	1700	SF	T	F	0	-	11	-	7	-	-	6	1:gUiUlQ/SPHb+/xjpu36hiY3DW2k=	-	news.lab-site.org	box1	allowed	allowed	allow news.lab-site.org (demo.yaml:4)	-	fin	-
1796000135.780256	C3586650300000027	172.16.0.2	48860	45.45.45.11	443	tcp	ssl	0.022806	781	1683	SF	T	F	0	-	11	-	7	-	-	6	1:d6IJaxb9CBIXOFG3tGSIoDDI08I=	-	api.lab-a.com	box1	allowed	allowed	allow *.lab-a.com (demo.yaml:5)	-	fin	-
1796000136.042248	C358665030000002a	172.16.0.2	34644	45.45.45.10	443	tcp	ssl	0.008036	777	1680	SF	T	F	0	-	10	-	6	-	-	6	1:wUzad4j3IgnkK8zwnhO3afkI/YE=	-	news.lab-site.org	box1	allowed	allowed	allow news.lab-site.org (demo.yaml:4)	-	fin	-
1796000136.104750	C358665030000002d	172.16.0.2	48872	45.45.45.11	443	tcp	ssl	0.052451	781	1682	SF	T	F	0	-	11	-	9	-	-	6	1:BTyEp4PW2bCVgaxhP2DcXwdtKiU=	-	api.lab-a.com	box1	allowed	allowed	allow *.lab-a.com (demo.yaml:5)	-	fin	-
1796000136.429780	C3586650300000030	172.16.0.2	34656	45.45.45.10	443	tcp	ssl	0.006051	777	1678	SF	T	F	0	-	10	-	8	-	-	6	1:xHcAJ7MepcMMMhKnSQ7yY8kfwAc=	-	news.lab-site.org	box1	allowed	allowed	allow news.lab-site.org (demo.yaml:4)	-	fin	-
1796000136.540612	C3586650300000033	172.16.0.2	48888	45.45.45.11	443	tcp	ssl	0.005235	781	1705	SF	T	F	0	-	10	-	5	-	-	6	1:aJrWwbaHIMkMiPQlcVPztBq1U84=	-	api.lab-a.com	box1	allowed	allowed	allow *.lab-a.com (demo.yaml:5)	-	fin	-
1796000136.839715	C3586650300000036	172.16.0.2	34666	45.45.45.10	443	tcp	ssl	0.021480	777	1678	SF	T	F	0	-	10	-	8	-	-	6	1:du6FABzJMCoahmyUMxHyrZk3Xp0=	-	news.lab-site.org	box1	allowed	allowed	allow news.lab-site.org (demo.yaml:4)	-	fin	-
1796000137.105355	C3586650300000039	172.16.0.2	48894	45.45.45.11	443	tcp	ssl	0.024182	781	1703	SF	T	F	0	-	10	-	9	-	-	6	1:kgegt9gZf7fFdZ1T3x/45vt7ckE=	-	api.lab-a.com	box1	allowed	allowed	allow *.lab-a.com (demo.yaml:5)	-	fin	-
1796000137.421249	C358665030000003c	172.16.0.2	34680	45.45.45.10	443	tcp	ssl	0.004166	777	1679	SF	T	F	0	-	10	-	8	-	-	6	1:NRjz3nAvIhqpC0qGRzJtCh7bMlI=	-	news.lab-site.org	box1	allowed	allowed	allow news.lab-site.org (demo.yaml:4)	-	fin	-
1796000137.511895	C358665030000003f	172.16.0.2	48908	45.45.45.11	443	tcp	ssl	0.008353	781	1704	SF	T	F	0	-	11	-	9	-	-	6	1:F+YTAlm1E9v9BEYcqjd+4VLIjcU=	-	api.lab-a.com	box1	allowed	allowed	allow *.lab-a.com (demo.yaml:5)	-	fin	-
1796000137.811548	C3586650300000042	172.16.0.2	34682	45.45.45.10	443	tcp	ssl	0.008819	777	1680	SF	T	F	0	-	10	-	8	-	-	6	1:rQ0TjZYDmmMpD7mPTet/HeerGLM=	-	news.lab-site.org	box1	allowed	allowed	allow news.lab-site.org (demo.yaml:4)	-	fin	-
1796000137.862785	C3586650300000045	172.16.0.2	48918	45.45.45.11	443	tcp	ssl	0.009693	781	1704	SF	T	F	0	-	11	-	9	-	-	6	1:UZkNL4saT+gda1WJj6CG3ZOJzEQ=	-	api.lab-a.com	box1	allowed	allowed	allow *.lab-a.com (demo.yaml:5)	-	fin	-
#close	2026-11-30-00-55-47
